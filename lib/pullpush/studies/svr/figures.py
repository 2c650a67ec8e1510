"""Figures of chapter 2: what support vectors change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pullpush.show.layout import PAGE_WIDTH, panel_size
from pullpush.show.marks import band
from pullpush.show.palette import (
    BLACK,
    BLUE,
    GREEN,
    METHOD_COLOURS,
    PART_COLOURS,
    PURPLE,
    SKY,
    VERMILION,
    method_name,
    method_style,
)


def gain_intervals(table: pd.DataFrame, metrics: Sequence[str] = ("T2A R@1", "A2T R@1")) -> Figure:
    """What systems add to their baselines, with intervals; columns system, metric, value, low, high (fractions)."""
    systems = list(dict.fromkeys(table["system"]))
    fig, axes = plt.subplots(1, len(metrics), figsize=(9, 1.2 + 0.34 * len(systems)), sharey=True, squeeze=False)
    for ax, metric in zip(axes[0], metrics, strict=True):
        rows = table[table["metric"] == metric].set_index("system").loc[systems]
        value = 100 * rows["value"].to_numpy()
        spread = np.abs(100 * rows[["low", "high"]].to_numpy().T - value)
        ax.errorbar(value, range(len(systems)), xerr=spread, fmt="o", color=BLUE, capsize=3)
        ax.axvline(0, color=BLACK, linewidth=0.8)
        ax.set(title=metric, xlabel="gain (points)")
    axes[0, 0].set_yticks(range(len(systems)), [method_name(system) for system in systems])
    axes[0, 0].set_ylabel("objective")
    axes[0, 0].invert_yaxis()
    return fig


def convergence(history: pd.DataFrame) -> Figure:
    """SupCLAP Figure 5: validation R@1 over epochs, a panel a direction; columns system, seed, epoch and both R@1."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8))
    for ax, column in zip(axes, ("T2A R@1", "A2T R@1"), strict=True):
        for system, rows in history.groupby("system", sort=False):
            band(ax, rows.assign(**{column: 100 * rows[column]}), "epoch", column, **method_style(system))
        ax.set(xlabel="epoch", ylabel=f"validation {column} (%)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def departure_curves(table: pd.DataFrame) -> Figure:
    """SVR's push, negative by negative, for both readings of the similarity, over R; see `svr_study.departure`."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for similarity, style in (("dot", "-"), ("cosine", "--")):
        rows = table[table["similarity"] == similarity]
        for part in ("parallel", "perpendicular"):
            label = f"{part}, {similarity}"
            left.plot(rows["radius"], rows[part], style, color=PART_COLOURS[part], label=label)
        right.plot(rows["radius"], 100 * rows["error"], style, color=BLACK)
    rows = table[table["similarity"] == "dot"]
    left.plot(rows["radius"], rows["predicted"].abs(), ":", color=BLACK, label="|1 − R/‖a − t‖|")
    left.set(xlabel="radius R", ylabel="part of the push (1: at R = 0)", ylim=(0, None))
    right.set(xlabel="radius R", ylabel="departure from Eq. 16 (%)", ylim=(0, None))
    fig.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def radius_history(
    table: pd.DataFrame,
    panels: Mapping[str, str],
    *,
    by: str = "system",
    column: str = "radius",
    ylabel: str = "mean radius R",
) -> Figure:
    """SupCLAP Figures 3, 6 and 7: mean radius over training steps, a curve for each group of `by` (band: seeds).

    Args:
        table: columns panel, `by`, seed, step and `column`, the number that a loss learns.
        panels: value of the column panel → title.
    """
    width, height = panel_size(len(panels))
    fig, axes = plt.subplots(1, len(panels), figsize=(width, height + 0.5), squeeze=False, sharey=True)
    colours = [SKY, BLUE, GREEN, VERMILION, BLACK, PURPLE]
    for ax, (panel, title) in zip(axes[0], panels.items(), strict=True):
        groups = table[table["panel"] == panel].groupby(by, sort=False)
        for (group, rows), colour in zip(groups, colours, strict=False):
            style = method_style(group) if group in METHOD_COLOURS else {"label": str(group), "colour": colour}
            band(ax, rows, "step", column, **style)
        ax.axhline(0, color=BLACK, linewidth=0.8)
        ax.set(xlabel="step", title=title)
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(0, -0.2))  # below, clear of the curves
    axes[0, 0].set_ylabel(ylabel)
    return fig


def similarity_density(table: pd.DataFrame) -> Figure:
    """SupCLAP Figure 4: density of the cosine of matching pairs; columns system, seed, cosine."""
    fig, ax = plt.subplots(figsize=(6.4, 3.4))
    for system, rows in table.groupby("system", sort=False):
        style = method_style(system)
        sns.kdeplot(rows["cosine"], ax=ax, color=style["colour"], label=style["label"], clip=(-1, 1))
    ax.set(xlabel="cosine of a clip and its caption", ylabel="density")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def score_by_setting(table: pd.DataFrame, panels: Mapping[str, str], *, metric: str = "R@1") -> Figure:
    """A score over settings, a panel each, a curve a system (band: seeds); values stand at equal distances.

    table: columns setting, value, system, seed and `metric` (a fraction); panels: setting → name of its axis.
    """
    count = min(3, len(panels))
    fig, axes = plt.subplots(
        -(-len(panels) // count), count, figsize=(PAGE_WIDTH, 3 * -(-len(panels) // count)), squeeze=False
    )
    for ax, (setting, title) in zip(axes.flat, panels.items(), strict=False):
        rows = table[table["setting"] == setting]
        values = sorted(rows["value"].unique())
        place = {value: number for number, value in enumerate(values)}
        for system, own in rows.groupby("system", sort=False):
            scaled = own.assign(place=own["value"].map(place), score=100 * own[metric])
            band(ax, scaled, "place", "score", style="o-", **method_style(system))
        ax.set_xticks(range(len(values)), [f"{value:g}".replace("-", "−") for value in values])
        ax.set(xlabel=title, ylabel=f"{metric} (%)")
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    handles = {label: line for ax in fig.axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, fontsize="small")
    return fig

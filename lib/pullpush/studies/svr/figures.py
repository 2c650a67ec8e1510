"""Figures of chapter 2: what support vectors change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from pullpush.show.intervals import intervals
from pullpush.show.layout import (
    dodge,
    finish,
    mark_zero,
    name_places,
    panels,
    plain_logarithm,
    signed,
    spread_note,
    whole_numbers,
)
from pullpush.show.marks import band, density, dots
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PARTS, PURPLE, SKY, VERMILION, method_name, method_styles
from pullpush.studies.drift import drift_curves

__all__ = [
    "convergence",
    "departure_curves",
    "drift_curves",
    "gain_intervals",
    "gains_by_length",
    "push_fan",
    "radius_history",
    "score_by_setting",
    "similarity_density",
]  # fmt: skip
DIRECTIONS = {"T2A R@1": BLUE, "A2T R@1": ORANGE}


def gain_intervals(table: pd.DataFrame, metrics: Iterable[str] = tuple(DIRECTIONS)) -> Figure:
    """What systems add to their baselines, a colour a metric; table: columns system, metric, value, low, high."""
    rows = table[table["metric"].isin(metrics)].assign(system=table["system"].map(method_name))
    return intervals(rows, colours="metric", xlabel="gain (points)")


def convergence(history: pd.DataFrame) -> Figure:
    """SupCLAP Figure 5: validation R@1 over epochs; a row of panels a direction, a column a family of losses.

    history: columns system, seed, epoch and both R@1 (fractions).
    """
    family = history["system"].str.partition("+")[0]
    families, styles = list(dict.fromkeys(family)), method_styles(history["system"])
    fig, axes = panels(len(families), 2, height=2.4, sharex=True, sharey=True)
    for number, ax in enumerate(axes):
        column, name = list(DIRECTIONS)[number // len(families)], families[number % len(families)]
        for system, rows in history[family == name].groupby("system", sort=False):
            band(ax, rows, "epoch", column, scale=100, style="o-", **styles[system])
        ax.set_xlabel("epoch" if number >= len(families) else "")
        ax.set_ylabel(f"validation {column} (%)" if number % len(families) == 0 else "")
        whole_numbers(ax)
    return finish(fig, spread_note(history, within=("system",)))


def departure_curves(table: pd.DataFrame) -> Figure:
    """SVR's push, negative by negative, for both readings of the similarity, over R; see `departure`."""
    fig, (left, right) = panels(2, height=3)
    for similarity, style in (("dot", "-"), ("cosine", "--")):
        rows = table[table["similarity"] == similarity]
        for part in ("parallel", "perpendicular"):
            left.plot(rows["radius"], rows[part], style, color=PARTS[part][1], label=f"{part}, {similarity}")
        right.plot(rows["radius"], 100 * rows["error"], style, color=BLACK)
        end = (rows["radius"].iloc[-1], 100 * rows["error"].iloc[-1])
        right.annotate(similarity, end, (0, 3), textcoords="offset points", ha="right", va="bottom")
    rows = table[table["similarity"] == "dot"]
    left.plot(rows["radius"], rows["predicted"].abs(), ":", color=BLACK, label="|1 − R/‖a − t‖|")
    left.set(xlabel="radius R", ylabel="part of the push (1: at R = 0)", ylim=(0, None))
    right.set(xlabel="radius R", ylabel="departure from Eq. 16 (%)", ylim=(0, None))
    return finish(fig)


def radius_history(
    table: pd.DataFrame,
    panels_of: Mapping[str, str],
    *,
    by: str = "system",
    column: str = "radius",
    ylabel: str = "mean radius R",
) -> Figure:
    """SupCLAP Figures 3, 6 and 7: mean radius over training steps, a curve for each group of `by`.

    Args:
        table: columns panel, `by`, seed, step and `column`, the number that a loss learns.
        panels_of: value of the column panel → title.
    """
    table = table[table["panel"].isin(list(panels_of))]
    groups = list(dict.fromkeys(table[by]))
    shades = zip(groups, (SKY, BLUE, GREEN, VERMILION, BLACK, PURPLE, ORANGE), strict=False)
    plain: dict[str, dict[str, Any]] = {group: {"label": str(group), "colour": colour} for group, colour in shades}
    styles = method_styles(groups) if by == "system" else plain
    fig, axes = panels(len(panels_of), sharey=True)
    for ax, (panel, title) in zip(axes, panels_of.items(), strict=True):
        for group, rows in table[table["panel"] == panel].groupby(by, sort=False):
            band(ax, rows, "step", column, **styles[group])
        mark_zero(ax, "y")
        ax.set(xlabel="step", title=title)
    axes[0].set_ylabel(ylabel)
    return finish(fig, spread_note(table, within=("panel", by)), handles=[] if len(groups) == 1 else None)


def weight_history(table: pd.DataFrame) -> Figure:
    """The weights that Simple Reweight learns, seed by seed, for their mean is what no run did.

    table: columns system, seed, step, weight; a panel for each system, logarithmic where all its weights exceed zero.
    """
    systems = list(dict.fromkeys(table["system"]))
    fig, axes = panels(len(systems))
    for ax, system in zip(axes, systems, strict=True):
        rows = table[table["system"] == system]
        band(ax, rows, "step", "weight", colour=VERMILION, apart="seed")
        ax.axhline(1, color=BLACK, linewidth=0.8)
        ax.set(xlabel="step", ylabel="learnt weight w", title=method_name(system))
        if rows["weight"].min() > 0:
            ax.set_yscale("log")
            plain_logarithm(ax.yaxis)
    return finish(fig, f"A line a seed ({table['seed'].nunique()}); w = 1 is InfoNCE")


def similarity_density(table: pd.DataFrame) -> Figure:
    """SupCLAP Figure 4: density of the cosine of matching pairs; columns system, seed, cosine."""
    fig, (ax,) = panels(1, height=3, width=6)
    styles = method_styles(table["system"])
    for system, rows in table.groupby("system", sort=False):
        density(ax, rows["cosine"], limits=(-1, 1), **styles[system])
    ax.set(xlabel="cosine of a clip and its caption", ylabel="density", ylim=(0, None))
    count = table["seed"].nunique()
    return finish(fig, f"All test pairs of {count} seeds" if count > 1 else "All test pairs of one seed")


def score_by_setting(table: pd.DataFrame, settings: Mapping[str, str], *, metric: str = "R@1") -> Figure:
    """A score at each value of some settings, a panel each, a colour a system.

    table: columns setting, value, system, seed and `metric` (a fraction); settings: setting → name of its axis.
    """
    columns = min(3, len(settings))
    rows = -(-len(settings) // columns)
    fig, axes = panels(columns, rows, height=2.5)
    styles = method_styles(table["system"])
    if len(styles) == 1:
        styles = {system: {"colour": BLUE} for system in styles}
    for ax, (setting, title) in zip(axes, settings.items(), strict=False):
        found = table[table["setting"] == setting]
        values, systems = sorted(found["value"].unique()), list(dict.fromkeys(found["system"]))
        for number, (system, runs) in enumerate(found.groupby("system", sort=False)):
            spread = runs.groupby("value")[metric].agg(["mean", "min", "max"])
            places = np.searchsorted(values, spread.index) + dodge(number, len(systems), 0.45)
            columns_of = {"value": "mean", "low": "min", "high": "max"}
            dots(ax, spread, places, scale=100, upright=True, **columns_of, **styles[system])
        name_places(ax, [signed(value) for value in values], axis="x")
        ax.set(xlabel=title, xlim=(-0.5, len(values) - 0.5))
    for ax in axes[::columns]:
        ax.set_ylabel(f"{metric} (%)")
    for ax in axes[len(settings) :]:
        ax.remove()
    return finish(fig, spread_note(table, "bar", within=("setting", "value", "system")))


def gains_by_length(table: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """R@1 at each length of training, and what systems have over their baselines there, a panel a baseline.

    table: columns length, system, seed and "R@1" (a fraction); gains: see `lengths.gains`.
    """
    lengths, baselines = sorted(table["length"].unique()), list(dict.fromkeys(gains["over"]))
    fig, axes = panels(1 + len(baselines), height=3.2)
    styles = method_styles(table["system"])
    for system, rows in table.groupby("system", sort=False):
        places = rows.assign(place=np.searchsorted(lengths, rows["length"]))
        band(axes[0], places, "place", "R@1", scale=100, style="o-", **styles[system])
    axes[0].set(ylabel="R@1 (%)", title="reached")
    for ax, baseline in zip(axes[1:], baselines, strict=True):
        found = gains[gains["over"] == baseline]
        systems = list(dict.fromkeys(found["system"]))
        for number, (system, rows) in enumerate(found.groupby("system", sort=False)):
            places = np.searchsorted(lengths, rows["length"]) + dodge(number, len(systems), 0.45)
            style = {"colour": styles[system]["colour"], "marker": "os^"[number % 3]}
            dots(ax, rows, places, value="difference", upright=True, **style)
        mark_zero(ax, "y")
        ax.set(ylabel="points of R@1", title=f"over {method_name(baseline)}")
    for ax in axes:
        name_places(ax, [f"×{length}" for length in lengths], axis="x")
        ax.set(xlabel="length", xlim=(-0.5, len(lengths) - 0.5))
    return finish(fig, "Bands from the least seed to the most; intervals of 95 % over seeds and clips")


def push_fan(table: pd.DataFrame) -> Figure:
    """The push on one anchor in the plane of û and what is across it, an arrow a radius; see `proof.push_fan`."""
    titles = {"held": "probabilities of R = 0", "of t_sup": "probabilities of the support vector"}
    fig, axes = panels(2, sharex=True, sharey=True)
    for ax, (weights, title) in zip(axes, titles.items(), strict=True):
        rows = table[table["weights"] == weights]
        for row, shade in zip(rows.itertuples(), np.linspace(0.35, 1, len(rows)), strict=True):
            tip, colour = (row.parallel, row.perpendicular), to_rgba(BLUE, shade)
            ax.plot((0, tip[0]), (0, tip[1]), "-o", color=colour, markevery=[1], markersize=4, linewidth=1.5)
            ax.annotate(f"{row.fraction:g}", tip, (5, 2), textcoords="offset points", fontsize="small")
        ax.set(title=title, xlabel="along û")
        ax.margins(0.15)
        mark_zero(ax)
    axes[0].set(ylabel="across û", ylim=(0, None))
    return finish(fig, "A number is R over the distance of the pair")

"""Figures of chapter 1: what the forces on an embedding are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import panel_size
from pullpush.show.marks import band
from pullpush.show.palette import (
    BLACK,
    BLUE,
    GREEN,
    METHOD_COLOURS,
    ORANGE,
    PART_COLOURS,
    PART_NAMES,
    PURPLE,
    SKY,
    VERMILION,
    method_name,
)


def force_history(table: pd.DataFrame, *, recipe: str = "infonce") -> Figure:
    """Norms of the forces, and the perpendicular share of the push, over training steps (band: seeds)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    rows = table[table["recipe"] == recipe]
    for part in PART_COLOURS:
        band(left, rows, "step", part, label=PART_NAMES[part], colour=PART_COLOURS[part])
    left.set(xlabel="step", ylabel="mean norm of the force", ylim=(0, None))
    fig.legend(loc="outside upper center", ncols=5, fontsize="small")
    band(right, rows, "step", "perpendicular_share", label="share", colour=PART_COLOURS["perpendicular"])
    right.set(xlabel="step", ylabel="‖F⊥‖² / ‖F_push‖²", ylim=(0, 1.02))
    return fig


def share_by_setting(table: pd.DataFrame) -> Figure:
    """How much of the push is perpendicular, and how much of that is left, over temperature and over batch size.

    table: see `parts.parts_by_setting`; models "untrained" and "trained".
    """
    fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
    curves = {
        "perpendicular_share": ("‖F⊥‖² / ‖F_push‖²", PURPLE),
        "perpendicular_over_pull": ("‖F⊥‖ / ‖F_pull‖", GREEN),
        "sideways_over_pull": ("‖F_sideways‖ / ‖F_pull‖", SKY),
    }
    for ax, (setting, label) in zip(
        axes, (("temperature", "temperature τ"), ("batch size", "batch size")), strict=True
    ):
        rows = table[table["setting"] == setting]
        for column, (title, colour) in curves.items():
            for model, style in (("untrained", "--"), ("trained", "-")):
                part = rows[rows["model"] == model]
                band(ax, part, "value", column, label=f"{title}, {model}", colour=colour, style=style)
        ax.set_xscale("log")
        ticks = sorted(rows["value"].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45)
        ax.set_xticks([], minor=True)
        ax.set(xlabel=label, ylim=(0, 1.05))
    axes[0].set_ylabel("ratio")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def local_global_bars(table: pd.DataFrame) -> Figure:
    """Mini-batch against global perpendicular force, over batch size: repeated part, fluctuating part, cosine."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    x = np.arange(len(table))
    repeated = table["batch"] - table["variance"]
    left.bar(x, repeated, color=PURPLE, label="repeated by every batch")
    left.bar(x, table["variance"], bottom=repeated, color=SKY, label="fluctuates from batch to batch")
    left.axhline(table["whole"].iloc[0], color=BLACK, linestyle="--", label="all negatives (global)")
    left.set_xticks(x, table["batch_size"])
    left.set(xlabel="batch size", ylabel="mean ‖F⊥‖²")
    fig.legend(loc="outside upper center", ncols=3, fontsize="small")
    right.plot(x, table["cosine"], "o-", color=BLACK)
    right.set_xticks(x, table["batch_size"])
    right.set(xlabel="batch size", ylabel="cosine with the global F⊥", ylim=(0, 1.02))
    return fig


def distance_terms(table: pd.DataFrame) -> Figure:
    """Eq. 12 on real steps: what each term did to the squared distance, over training."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    band(left, table, "step", "ideal", label="along the ideal direction", colour=GREEN)
    band(left, table, "step", "noise_penalty", label="noise penalty η²‖F⊥‖²", colour=PURPLE)
    left.axhline(0, color=BLACK, linewidth=0.8)
    left.set(xlabel="step", ylabel="change of ‖t⁺ − a⁺‖² in one step")
    left.legend(fontsize="small")
    band(right, table, "step", "penalty_ratio", label="", colour=PURPLE)
    right.set_yscale("log")
    right.set(xlabel="step", ylabel="penalty / |ideal term|")
    return fig


def drift_curves(table: pd.DataFrame, panels: Mapping[str, str]) -> Figure:
    """SupCLAP Figure 1: cosine of update and pull over training, one panel for each of the `panels` columns."""
    fig, axes = plt.subplots(1, len(panels), figsize=panel_size(len(panels)), sharey=True, squeeze=False)
    for ax, (column, title) in zip(axes[0], panels.items(), strict=True):
        for recipe, rows in table.groupby("recipe", sort=False):
            colour = METHOD_COLOURS.get(recipe, BLACK)
            band(ax, rows, "step", column, label=method_name(recipe), colour=colour)
        ax.set(xlabel="step", title=title)
    axes[0, 0].set_ylabel("cosine with the pull")
    if len(axes[0, 0].lines) > 3:  # too many for a corner of a panel
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    else:
        axes[0, 0].legend()
    return fig


def force_plane(
    negatives: Sequence[np.ndarray],
    partner: np.ndarray,
    pushes: Sequence[np.ndarray],
    *,
    titles: Sequence[str],
    colours: Sequence[str] = (BLUE, VERMILION, GREEN),
) -> Figure:
    """SupCLAP Figure 2 from real embeddings: panels of an anchor at the origin and its pull along the x-axis.

    Args:
        negatives: per group `(M, 3)`: position of each negative along û and across it, and its probability P⁻.
        partner: `(2,)` position of the positive.
        pushes: per group `(2,)`, the resultant −F_push on the anchor in the same plane.
        titles: legend of each group.
        colours: one a group.
    """
    fig, ax = plt.subplots(figsize=(6.4, 4.6))
    reach = float(np.linalg.norm(partner))
    tips = [reach * push / max(np.linalg.norm(push), 1e-12) for push in pushes]
    for points, tip, title, colour in zip(negatives, tips, titles, colours, strict=False):
        size = 8 + 900 * points[:, 2] / max(points[:, 2].sum(), 1e-12)
        ax.scatter(points[:, 0], points[:, 1], s=size, color=colour, alpha=0.35, linewidth=0)
        ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2.5})
        ax.plot([], [], color=colour, label=title)
    ax.annotate("", partner, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLACK, "lw": 2.5})
    ax.plot(0, 0, "s", color=BLACK, markersize=9, label="caption")
    ax.plot(*partner, "*", color=ORANGE, markersize=16, label="its sound")
    shown = np.concatenate([np.zeros((1, 2)), partner[None], np.array(tips), *[points[:, :2] for points in negatives]])
    low, high = shown.min(0) - 0.12, shown.max(0) + 0.12
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set(xlabel="along û, towards the sound", ylabel="across û")
    fig.legend(loc="outside upper center", ncols=3, fontsize="small")
    return fig

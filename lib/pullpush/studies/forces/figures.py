"""Figures of chapter 1: what the force on an embedding is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pullpush.show.layout import finish, mark_zero, panels, plain_logarithm, spread_note
from pullpush.show.marks import band, bars, scatter
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PARTS, PURPLE, SKY, VERMILION
from pullpush.studies.drift import drift_curves as drift_curves


def force_history(table: pd.DataFrame, *, recipe: str = "infonce") -> Figure:
    """Norms of the forces, and the perpendicular share of the push, over training steps."""
    rows = table[table["recipe"] == recipe]
    fig, (left, right) = panels(2)
    for part, (name, colour) in PARTS.items():
        band(left, rows, "step", part, label=name, colour=colour)
    band(right, rows, "step", "perpendicular_share", colour=PARTS["perpendicular"][1])
    left.set(xlabel="step", ylabel="mean norm of the force", ylim=(0, None))
    right.set(xlabel="step", ylabel="perpendicular share\n‖F⊥‖² / ‖F_push‖²", ylim=(0, 1.02))
    return finish(fig, spread_note(rows))


def share_by_setting(table: pd.DataFrame) -> Figure:
    """How much of the push is perpendicular, and how much of that is left, over temperature and over batch size.

    table: see `parts_by_setting`; models "untrained" and "trained".
    """
    curves = {
        "perpendicular_share": ("‖F⊥‖² / ‖F_push‖²", PURPLE),
        "perpendicular_over_pull": ("‖F⊥‖ / ‖F_pull‖", GREEN),
        "sideways_over_pull": ("‖F_sideways‖ / ‖F_pull‖", SKY),
    }
    names = {"temperature": "temperature τ", "batch size": "batch size"}
    fig, axes = panels(2, height=3.6, sharey=True)
    for ax, (setting, name) in zip(axes, names.items(), strict=True):
        rows = table[table["setting"] == setting]
        for column, (title, colour) in curves.items():
            for model, style in (("untrained", "--"), ("trained", "-")):
                part = rows[rows["model"] == model]
                band(ax, part, "value", column, label=f"{title}, {model}", colour=colour, style=style)
        _name_powers(ax, sorted(rows["value"].unique()))
        ax.set(xlabel=name, ylim=(0, 1.05))
    axes[0].set_ylabel("ratio")
    return finish(fig)


def local_global_bars(table: pd.DataFrame) -> Figure:
    """Mini-batch against global perpendicular force, over batch size: repeated part, fluctuating part, cosine."""
    fig, (left, right) = panels(2)
    places = np.arange(len(table))
    repeated = table["batch"] - table["variance"]
    bars(left, places, repeated, colour=PURPLE, label="repeated by every batch")
    bars(left, places, table["variance"], start=repeated, colour=SKY, label="fluctuates from batch to batch")
    left.axhline(table["whole"].iloc[0], color=BLACK, linestyle="--", label="all negatives (global)")
    left.set_xticks(places, table["batch_size"])
    band(right, table, "batch_size", "cosine", style="o-", colour=BLACK)
    _name_powers(right, table["batch_size"])
    left.set(xlabel="batch size", ylabel="mean ‖F⊥‖²")
    right.set(xlabel="batch size", ylabel="cosine with the global F⊥", ylim=(0, 1.02))
    return finish(fig)


def distance_terms(table: pd.DataFrame) -> Figure:
    """Eq. 12 on real steps: what each term did to the squared distance, over training."""
    fig, (left, right) = panels(2)
    band(left, table, "step", "ideal", label="along the ideal direction", colour=GREEN)
    band(left, table, "step", "noise_penalty", label="noise penalty η²‖F⊥‖²", colour=PURPLE)
    band(right, table, "step", "penalty_ratio", colour=PURPLE)
    mark_zero(left, "y")
    left.set(xlabel="step", ylabel="change of ‖t⁺ − a⁺‖² a step")
    right.set(xlabel="step", ylabel="penalty / |ideal term|", yscale="log")
    plain_logarithm(right.yaxis)
    return finish(fig, spread_note(table))


def force_plane(
    negatives: Sequence[np.ndarray],
    partner: np.ndarray,
    pushes: Sequence[np.ndarray],
    *,
    titles: Sequence[str],
) -> Figure:
    """SupCLAP Figure 2 from real embeddings: an anchor at the origin, its pull along the x-axis, and its pushes.

    Args:
        negatives: per group `(M, 3)`: position of each negative along û and across it, and its probability P⁻.
        partner: `(2,)` position of the positive.
        pushes: per group `(2,)`, the resultant −F_push on the anchor in the same plane; drawn as long as the pull.
        titles: legend of each group, of which there are three at most.
    """
    fig, (ax,) = panels(1, height=4.6, width=6)
    tips = [np.linalg.norm(partner) * push / max(np.linalg.norm(push), 1e-12) for push in pushes]
    for points, tip, title, colour in zip(negatives, tips, titles, (BLUE, VERMILION, GREEN), strict=False):
        sizes = 8 + 900 * points[:, 2] / max(points[:, 2].sum(), 1e-12)
        scatter(ax, points[:, 0], points[:, 1], sizes=sizes, colours=colour, alpha=0.35)
        ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2.5})
        ax.plot([], [], color=colour, label=title)
    ax.annotate("", partner, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLACK, "lw": 2.5})
    ax.plot(0, 0, "s", color=BLACK, markersize=9, label="caption")
    ax.plot(*partner, "*", color=ORANGE, markersize=16, label="its sound")
    ax.update_datalim(tips)  # for an arrow does not count
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="along û, towards the sound", ylabel="across û")
    return finish(fig)


def _name_powers(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic x-axis whose ticks are the values that were measured."""
    ax.set_xscale("log")
    ax.set_xticks(values, [f"{value:g}" for value in values], rotation=45)
    ax.set_xticks([], minor=True)

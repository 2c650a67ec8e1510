"""Figures of chapter 1 that are no curves: batches beside the whole, and one caption in a plane."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import finish, panels
from pullpush.show.marks import band, bars, scatter
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION


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
    right.set_xscale("log")
    right.set_xticks(table["batch_size"], [f"{size:g}" for size in table["batch_size"]], rotation=45)
    right.set_xticks([], minor=True)
    left.set(xlabel="batch size", ylabel="mean ‖F⊥‖²")
    right.set(xlabel="batch size", ylabel="cosine with the global F⊥", ylim=(0, 1.02))
    return finish(fig)


def force_plane(
    negatives: Sequence[np.ndarray], partner: np.ndarray, pushes: Sequence[np.ndarray], *, titles: Sequence[str]
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

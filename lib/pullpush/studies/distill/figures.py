"""Figures of the lab of chapter 6: the stages, systems by encoder, teachers, softness, ambiguity, topics, ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import NDArray

from pullpush.show.intervals import note
from pullpush.show.layout import finish, panels, plain_logarithm
from pullpush.show.marks import bars, dots
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

SHADES = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
DRAWN = 12  # topics that a map tells apart
SETTINGS = {"teacher tau": "teacher's temperature", "weight": "weight λ₁ of the soft labels"}
PAPER = {"teacher tau": 0.05, "weight": 1.0}
# Boxes of the scheme: x, y, width, height (in the figure's units of 10 × 6), title, what is below it, colour.
BOXES = (
    (0.1, 3.7, 2.5, 1.5, "pretraining", "many clips, one caption each\nInfoNCE", GREY),
    (3.7, 3.7, 2.5, 1.5, "finetuning", "fewer clips, five captions\n+ soft labels, augmentation", BLUE),
    (7.3, 3.7, 2.6, 1.5, "re-finetuning", "the same clips\n+ topics", GREEN),
    (0.1, 0.9, 2.5, 1.3, "teachers", "the three pretrained\nmodels' mean", GREY),
    (3.7, 0.9, 2.5, 1.3, "other words", "back-translation, one word\nfewer or other, mixes", BLUE),
    (7.3, 0.9, 2.6, 1.3, "topics", "of the finetuned model (4)\nor of a text encoder (5)", GREEN),
)
ARROWS = (
    ((2.6, 4.45), (3.7, 4.45), "weights"),
    ((6.2, 4.45), (7.3, 4.45), "weights"),
    ((1.35, 3.7), (1.35, 2.2), ""),
    ((2.6, 1.9), (3.9, 3.7), ""),
    ((4.95, 2.2), (4.95, 3.7), ""),
    ((6.2, 3.8), (7.5, 2.2), ""),
    ((8.6, 2.2), (8.6, 3.7), ""),
)
NUMBERS = ((1.35, 5.45, "system 1"), (4.95, 5.45, "systems 2, 3"), (8.6, 5.45, "systems 4, 5"))


def stages() -> Figure:
    """The three stages, what each adds, and where that comes from (the paper's Figure 1)."""
    fig, (ax,) = panels(1, height=3.6)
    ax.set(xlim=(0, 10), ylim=(0.6, 5.9))
    ax.axis("off")
    for x, y, width, height, title, below, colour in BOXES:
        box = FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0.05", fill=False, edgecolor=colour, linewidth=1.6
        )
        ax.add_patch(box)
        ax.text(x + width / 2, y + height - 0.3, title, ha="center", va="center", fontweight="bold", color=colour)
        ax.text(x + width / 2, y + height / 2 - 0.25, below, ha="center", va="center", fontsize="small")
    for start, end, label in ARROWS:
        ax.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=12, color=BLACK, linewidth=1.2, shrinkA=3, shrinkB=3
            )
        )
        if label:
            ax.text((start[0] + end[0]) / 2, start[1] + 0.18, label, ha="center", fontsize="x-small")
    for x, y, label in NUMBERS:
        ax.text(x, y, label, ha="center", fontsize="small", color=BLACK)
    return fig


def fitting(table: pd.DataFrame, trained: pd.DataFrame) -> Figure:
    """How many clips a caption truly fits, among test clips and among training clips.

    table, trained: columns fits, share; see `truth.fits_by_caption`.
    """
    fig, axes = panels(2, height=2.6, sharey=True)
    for ax, found, title, colour in zip(
        axes, (table, trained), ("test clips", "training clips"), (BLUE, SKY), strict=True
    ):
        few = found[found["fits"] <= 8]
        bars(ax, few["fits"], 100 * few["share"], colour=colour)
        ax.set(xlabel="clips that a caption fits", title=title, xlim=(0.3, 8.7))
    axes[0].set_ylabel("captions (%)")
    return finish(fig)


def over_settings(table: pd.DataFrame, *, without: float, ylabel: str = "mAP@16 (%)") -> Figure:
    """A score over the teacher's temperature and over λ₁, with the paper's values among them; without: the score with
    no soft labels, a dotted line.

    table: columns setting ("paper", "teacher tau", "weight"), value of the setting in `at`, value, low, high.
    """
    paper = table[table["setting"] == "paper"]
    fig, axes = panels(2, height=2.9, sharey=True)
    for ax, (setting, title) in zip(axes, SETTINGS.items(), strict=True):
        own = pd.concat([table[table["setting"] == setting], paper.assign(at=PAPER[setting])]).sort_values("at")
        dots(ax, own, own["at"], scale=100, upright=True, colour=BLUE)
        ax.plot(own["at"], 100 * own["value"], "-", color=BLUE, linewidth=1, alpha=0.6)
        ax.axvline(PAPER[setting], color=GREY, linewidth=0.8, label="the paper's")
        ax.axhline(100 * without, color=BLACK, linestyle=":", linewidth=1, label="no soft labels")
        ax.set(xscale="log", xlabel=title)
        plain_logarithm(ax.xaxis)
    axes[0].set_ylabel(ylabel)
    return finish(fig, note(table))


def map_of_topics(points: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str]) -> Figure:
    """Captions where UMAP puts them, the largest topics in colours with their words; others grey.

    points: `(N, 2)`; labels: `(N,)`; names: of topics.
    """
    fig, (ax,) = panels(1, height=4.2)
    ax.scatter(*points.T, s=3, color=GREY, alpha=0.35, linewidths=0)
    for topic in range(min(DRAWN, len(names))):
        own = points[labels == topic]
        look = SHADES[topic % len(SHADES)]
        ax.scatter(*own.T, s=6, color=look, linewidths=0)
        _name(ax, np.median(own, axis=0), names[topic], look)
    ax.set(xticks=[], yticks=[], xlabel="first coordinate", ylabel="second coordinate")
    return fig


def _name(ax: Axes, place: NDArray[np.float32], name: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": colour, "alpha": 0.9, "linewidth": 0.8}
    x, y = map(float, place)
    ax.text(x, y, name, fontsize="x-small", ha="center", va="center", bbox=box)


def by_members(table: pd.DataFrame, marked: Mapping[str, float]) -> Figure:
    """mAP@16 of equal weights over the number of members: the mean of subsets, from the worst to the best.

    table: columns members, seed, value, low, high; marked: name → score of an ensemble, a line.
    """
    fig, (ax,) = panels(1, height=3.0)
    found = table.groupby("members")[["value", "low", "high"]].mean()
    ax.plot(found.index, 100 * found["value"], "o-", color=BLUE, label="mean of subsets, equal weights", markersize=4)
    ax.fill_between(found.index, 100 * found["low"], 100 * found["high"], color=BLUE, alpha=0.18, linewidth=0)
    for number, (name, value) in enumerate(marked.items()):
        colour, line = ((VERMILION, "--"), (BLACK, ":"), (GREEN, "-."))[number % 3]
        ax.axhline(100 * value, color=colour, linestyle=line, linewidth=1.2, label=name)
    ax.set(xlabel="members", ylabel="mAP@16 (%)")
    ax.set_xticks(list(found.index))
    return finish(fig, f"Means of {table['seed'].nunique()} seeds; the band from the worst to the best subset")

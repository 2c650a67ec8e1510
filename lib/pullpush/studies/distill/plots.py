"""Figures of chapter 6: the stages, how many clips a caption fits, labels, pushes, topics."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pullpush.show.intervals import LOOKS
from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels, plain_logarithm
from pullpush.show.marks import band, bars, dots, scatter
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION
from pullpush.studies.distill.science import LEVELS

LABELS = {"binary": BLUE, "soft": VERMILION, "smoothed": GREEN, "binary and soft": BLACK}
LINEAR = 1e-3  # weights below which their axis is linear
MOST = 12  # other clips that are drawn by their number; more are one bar
NAMED = 6  # topics that a map tells apart
# The scheme: where each box stands, what it is called, what is in it; which leads to which.
BOXES = {
    "pretraining": (1.5, 4.2, GREY, "many clips, one caption each\nInfoNCE (system 1)"),
    "finetuning": (5.0, 4.2, BLUE, "fewer clips, five captions\n+ soft labels (2), augmentation (3)"),
    "re-finetuning": (8.5, 4.2, GREEN, "the same clips\n+ topics (4, 5)"),
    "teachers": (1.5, 1.4, GREY, "the three pretrained\nmodels' mean"),
    "other words": (5.0, 1.4, BLUE, "back-translation, one word\nfewer or other, mixes"),
    "topics": (8.5, 1.4, GREEN, "of the finetuned model (4)\nor of a text encoder (5)"),
}
ARROWS = (
    ("pretraining", "finetuning"),
    ("finetuning", "re-finetuning"),
    ("pretraining", "teachers"),
    ("teachers", "finetuning"),
    ("other words", "finetuning"),
    ("finetuning", "topics"),
    ("topics", "re-finetuning"),
)


def stages() -> Figure:
    """The three stages, what each adds, and where that comes from (the paper's Figure 1)."""
    fig, (ax,) = panels(1, height=3.4)
    ax.set(xlim=(0, 10), ylim=(0.4, 5.2))
    ax.axis("off")
    boxes = {}
    for title, (x, y, colour, inside) in BOXES.items():
        frame = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
        boxes[title] = ax.text(x, y, f"{title}\n{inside}", ha="center", va="center", fontsize="x-small", bbox=frame)
    for start, end in ARROWS:
        arrow = {"arrowstyle": "-|>", "color": BLACK, "linewidth": 1.2, "patchA": boxes[start].get_bbox_patch()}
        arrow["patchB"] = boxes[end].get_bbox_patch()
        ax.annotate("", BOXES[end][:2], BOXES[start][:2], arrowprops=arrow)
    return fig


def fitting(others: Mapping[str, ArrayLike], batches: Mapping[int, float] | None = None, *, trained: int = 0) -> Figure:
    """How many other clips a caption fits, and how often one of them is in its batch.

    others: name of some clips → `(N,)`; batches: pairs in a batch → the share of captions with such a clip in it, if
    that is drawn; trained: pairs in a batch here, a thin line.
    """
    fig, (left, *right) = panels(2 if batches else 1, height=3.0)
    for number, (name, counts) in enumerate(others.items()):
        share = np.bincount(np.minimum(counts, MOST), minlength=MOST + 1) / len(np.asarray(counts))
        at = np.arange(MOST + 1) + dodge(number, len(others), 0.8)
        bars(left, at, 100 * share, width=0.8 / len(others), label=name, colour=(BLUE, ORANGE)[number])
    left.set(xlabel="other clips that a caption fits", ylabel="captions (%)")
    ticks = range(0, MOST + 1, 3)
    left.set_xticks(ticks, [f"{tick}+" if tick == MOST else str(tick) for tick in ticks])
    for ax in right:
        ax.plot(*zip(*((size, 100 * share) for size, share in (batches or {}).items()), strict=True), color=VERMILION)
        ax.axvline(trained, color=GREY, linewidth=0.8)
        ax.set(xlabel="pairs in a batch", ylabel="captions with a right clip\nthat is called wrong (%)", xscale="log")
        ax.set_ylim(0, None)
        plain_logarithm(ax.xaxis)
    return finish(fig)


def pushes(table: pd.DataFrame) -> Figure:
    """The mean weight of other clips on a text by how well they fit, a colour a label.

    table: see `science.push_by_truth`.
    """
    fig, (ax,) = panels(1, height=3.0)
    levels = [level for level in LEVELS if level in set(table["level"])]
    for number, (name, of_label) in enumerate(table.groupby("label", sort=False)):
        rows = of_label.set_index("level")[["weight"]].reindex(levels)
        places = np.arange(len(levels)) + dodge(number, table["label"].nunique(), 0.5)
        ax.hlines(places, 0, rows["weight"], color=LABELS[name], linewidth=1.5)
        dots(ax, rows, places, value="weight", label=f"{name} labels", colour=LABELS[name])
    name_places(ax, levels)
    mark_zero(ax)
    ax.set_xscale("symlog", linthresh=LINEAR)
    ax.xaxis.set_major_formatter("{x:g}")
    most = 2 * max(table["weight"].abs().max(), 10 * LINEAR)
    ax.set(xlabel="mean weight on the caption, in units of 1/τ: pull < 0 < push", xlim=(-most, most))
    return finish(fig)


def topic_map(points: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str]) -> Figure:
    """Captions in a plane, the largest topics in colours and shapes of their own with their words, the rest grey.

    points: `(N, 2)`; labels: `(N,)`, 0 is the largest topic; names: of the topics.
    """
    fig, (ax,) = panels(1, height=4.2)
    rest = (labels < 0) | (labels >= min(NAMED, len(names)))
    scatter(ax, *points[rest].T, sizes=8.0, colours=GREY, alpha=0.35)
    for topic, (name, (colour, marker)) in enumerate(zip(names[:NAMED], LOOKS, strict=False)):
        scatter(ax, *points[labels == topic].T, sizes=26.0, colours=colour, marker=marker, label=name)
    ax.set(xticks=[], yticks=[], xlabel="first coordinate", ylabel="second coordinate")
    ax.grid(False)
    return finish(fig)


def by_members(table: pd.DataFrame, marked: Mapping[str, float]) -> Figure:
    """mAP@16 of subsets with equal weights over their number of members; marked: scores of ensembles, a line each.

    table: columns members, seed, value, a row a subset.
    """
    fig, (ax,) = panels(1, height=3.0)
    band(ax, table, "members", "value", style="o-", scale=100, label="mean of subsets, equal weights")
    for (name, value), (colour, line) in zip(
        marked.items(), zip((VERMILION, BLACK, GREEN), ("--", ":", "-."), strict=True), strict=False
    ):
        ax.axhline(100 * value, color=colour, linestyle=line, linewidth=1.2, label=name)
    ax.set(xlabel="members", ylabel="mAP@16 (%)", xticks=sorted(table["members"].unique()))
    return finish(fig, f"{table['seed'].nunique()} seeds; the band from the worst to the best subset of any")

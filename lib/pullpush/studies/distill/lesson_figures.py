"""Figures of lesson 6: how many clips a caption fits, labels beside the truth, temperature, pushes, topics, gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels, plain_logarithm
from pullpush.show.marks import bars, dots, matrix, scatter
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from pullpush.studies.distill.lesson import LEVELS

TOPICS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LABELS = {"binary": BLUE, "soft": VERMILION, "smoothed": GREEN, "binary and soft": BLACK}
LINEAR = 1e-3  # weights below which their axis is linear
MOST = 12  # other clips that are drawn by their number; more are one bar


def fitting(table: pd.DataFrame, batches: pd.DataFrame, *, trained: int) -> Figure:
    """How many other clips a caption fits, and how often one of them is in its batch.

    table: see `lesson.counted`; batches: see `lesson.wrong_by_batch`; trained: pairs in a batch, a thin line.
    """
    fig, (left, right) = panels(2, height=3.0)
    names = list(dict.fromkeys(table["clips"]))
    for number, (name, colour) in enumerate(zip(names, (BLUE, ORANGE), strict=False)):
        others = np.minimum(table.loc[table["clips"] == name, "others"].to_numpy(), MOST)
        share = np.bincount(others, minlength=MOST + 1) / len(others)
        at = np.arange(MOST + 1) + dodge(number, len(names), 0.8)
        bars(left, at, 100 * share, width=0.8 / len(names), label=str(name), colour=colour)
    left.set(xlabel="other clips that a caption fits", ylabel="captions (%)")
    ticks = range(0, MOST + 1, 3)
    left.set_xticks(ticks, [f"{tick}+" if tick == MOST else str(tick) for tick in ticks])
    right.plot(batches["pairs"], 100 * batches["touched"], color=VERMILION)
    right.axvline(trained, color=GREY, linewidth=0.8)
    right.set(xlabel="pairs in a batch", ylabel="captions with a right clip\nthat is called wrong (%)", xscale="log")
    right.set_ylim(0, None)
    plain_logarithm(right.xaxis)
    return finish(fig)


def label_matrices(labels: Mapping[str, Tensor]) -> Figure:
    """Matrices of one batch side by side, captions in rows, each row over its largest number.

    labels: title → `(N, N)` in [0, 1].
    """
    fig, axes = panels(len(labels), height=2.3)
    for ax, (title, values) in zip(axes, labels.items(), strict=True):
        matrix(ax, (values / values.amax(dim=1, keepdim=True)).numpy())
        ax.set(title=title, xlabel="clips", xticks=[], yticks=[])
        ax.set_aspect("equal")
    axes[0].set_ylabel("captions")
    return finish(fig)


def temperatures(table: pd.DataFrame, *, paper: float) -> Figure:
    """How soft labels are over the temperature of the teachers: candidates that share one, and what is right of it.

    table: see `lesson.softness`; paper: the paper's temperature, a thin line.
    """
    fig, (left, right) = panels(2, height=2.8)
    left.plot(table["tau"], table["candidates"], color=BLUE)
    left.set(ylabel="clips that share a label", yscale="log")
    right.plot(table["tau"], 100 * table["right"], color=GREEN, label="on clips that fit")
    right.plot(table["tau"], 100 * table["own"], color=PURPLE, linestyle="--", label="on the caption's own clip")
    right.set(ylabel="share of a label (%)", ylim=(0, 103))
    for ax in (left, right):
        ax.axvline(paper, color=GREY, linewidth=0.8)
        ax.set(xlabel="temperature of the teachers", xscale="log")
        plain_logarithm(ax.xaxis)
    plain_logarithm(left.yaxis)
    return finish(fig)


def pushes(table: pd.DataFrame) -> Figure:
    """The mean weight of other clips on a text by how well they fit, a colour a label.

    table: see `lesson.push_by_truth`.
    """
    fig, (ax,) = panels(1, height=3.0)
    levels = [level for level in LEVELS if level in set(table["level"])]
    names = list(dict.fromkeys(table["label"]))
    for number, name in enumerate(names):
        rows = table[table["label"] == name].set_index("level")["weight"].reindex(levels)
        places = np.arange(len(levels)) + dodge(number, len(names), 0.5)
        colour = LABELS[name]
        ax.hlines(places, 0, rows, color=colour, linewidth=1.5)
        dots(ax, pd.DataFrame({"value": rows.to_numpy()}), places, label=f"{name} labels", colour=colour)
    name_places(ax, levels)
    mark_zero(ax)
    ax.set_xscale("symlog", linthresh=LINEAR)
    most = 2 * max(table["weight"].abs().max(), 10 * LINEAR)
    ax.set(xlabel="mean weight on the caption, in units of 1/τ: pull < 0 < push", xlim=(-most, most))
    return finish(fig)


def topic_map(
    points: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str], *, shown: int = 6
) -> Figure:
    """Captions in a plane, the largest topics in colours and shapes of their own with their words, the rest grey.

    points: `(N, 2)`; labels: `(N,)`, 0 is the largest topic; names: of the topics.
    """
    fig, (ax,) = panels(1, height=4.2)
    rest = (labels < 0) | (labels >= shown)
    scatter(ax, *points[rest].T, sizes=8.0, colours=GREY, alpha=0.35)
    for topic, (colour, marker) in enumerate(zip(TOPICS[:shown], MARKERS, strict=False)):
        if topic < len(names):
            scatter(ax, *points[labels == topic].T, sizes=26.0, colours=colour, marker=marker, label=names[topic])
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    return finish(fig)


def gains(table: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """What each system has over a baseline, a panel a score.

    table: see `Scores.gains`; titles: metric → title of its panel.
    """
    fig, axes = panels(len(titles), height=1.0 + 0.5 * table["system"].nunique(), sharey=True)
    systems = list(dict.fromkeys(table["system"]))
    for ax, (metric, title) in zip(axes, titles.items(), strict=True):
        rows = table[table["metric"] == metric].set_index("system").loc[systems]
        dots(ax, rows, np.arange(len(systems)), colour=BLUE, scale=100)
        mark_zero(ax)
        ax.set(title=title, xlabel="points over the baseline")
        name_places(ax, systems)
    return finish(fig)

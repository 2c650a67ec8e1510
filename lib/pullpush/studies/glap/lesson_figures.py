"""Figures of lesson 5: what a negative weighs, what grows with the batch, and who is in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from pullpush.show.layout import finish, panels, plain_logarithm
from pullpush.show.marks import band, matrix
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PARTS, PURPLE, SKY, VERMILION

DOMAINS = {"sound": GREEN, "music": PURPLE, "speech": ORANGE}
LINES = (BLUE, VERMILION, SKY, BLACK)
FAINTEST = 1e-6  # weight of a pair that is drawn
POSITIVE = 0.3  # similarity of a softmax's positive


def push_curves(sigmoids: Mapping[str, tuple[float, float]], *, tau: float) -> Figure:
    """The push that a negative gives against its similarity: σ(s/τ + b) of a sigmoid, whatever else is in the batch,
    and of a softmax where the positive has one similarity and all N − 2 other negatives have none.

    sigmoids: name → temperature and bias, four at most; tau: of the softmax.
    """
    softmaxes = {
        f"N = {pairs:,}": (tau, -math.log(math.exp(POSITIVE / tau) + pairs - 2)) for pairs in (8192, 1024, 128, 16)
    }
    similarity = np.linspace(-0.2, 1.0, 121)
    fig, axes = panels(2, height=3.2, sharey=True)
    for ax, title, lines in zip(axes, ("SigLIP", "InfoNCE"), (sigmoids, softmaxes), strict=True):
        for number, ((name, (scale, bias)), colour) in enumerate(zip(lines.items(), LINES, strict=False)):
            ax.plot(similarity, 1 / (1 + np.exp(-similarity / scale - bias)), color=colour)
            place = {"x": 0.98, "y": 0.04 + 0.08 * number, "ha": "right", "transform": ax.transAxes}
            ax.text(s=name, color=colour, fontsize="small", **place)  # where no curve goes
        ax.set(title=title, xlabel="similarity of the negative", yscale="log", ylim=(FAINTEST, 2))
    axes[0].set_ylabel("weight of its push")
    return finish(fig)


def weight_by_batch(table: pd.DataFrame, *, trained: int) -> Figure:
    """Pull and push a text over the size of the batch, a panel a system.

    table: see `weights.over_batch_sizes`; trained: the size in training, a thin line.
    """
    groups = table.groupby("system", sort=False)
    fig, axes = panels(len(groups), height=3.0, sharey=True)
    for ax, (system, rows) in zip(axes, groups, strict=True):
        for part, style, of in (("pull", "-", "its own clip"), ("push", "--", "all others together")):
            band(ax, rows, "clips", part, label=f"{part} of {of}", colour=PARTS[part][1], style=style)
        ax.axvline(trained, color=GREY, linewidth=0.8)
        ax.set(title=system, xlabel="pairs in a batch", xscale="log", yscale="log")
        plain_logarithm(ax.xaxis)
    plain_logarithm(axes[0].yaxis)
    axes[0].set_ylabel("weight a text")
    return finish(fig)


def pair_matrices(weights: Mapping[str, Tensor], domains: Sequence[str]) -> Figure:
    """The push of all pairs of one batch that is sorted by domain, a panel a system; the diagonal, a pull, is left out.

    weights: system → see `weights.pair_weights`; domains: of the pairs.
    """
    fig, axes = panels(len(weights), height=3.6, sharey=True)
    counts = pd.Series(domains).value_counts(sort=False)
    ends = counts.cumsum()
    middles = ends - counts / 2 - 0.5
    for ax, (system, values) in zip(axes, weights.items(), strict=True):
        push = values.double().numpy().clip(min=FAINTEST)
        np.fill_diagonal(push, np.nan)
        label = "log₁₀ of the push" if ax is axes[-1] else ""
        matrix(ax, np.log10(push), limits=(np.log10(FAINTEST), 0), label=label)
        for end in ends[:-1] - 0.5:
            ax.axvline(end, color="white", linewidth=0.8)
            ax.axhline(end, color="white", linewidth=0.8)
        ax.set(title=system, xlabel="clips")
        ax.set_xticks(middles, counts.index)
    axes[0].set(ylabel="texts")
    axes[0].set_yticks(middles, counts.index, rotation=90, va="center")
    return finish(fig)


def batch_shares(table: pd.DataFrame) -> Figure:
    """The share of each domain in a batch over the exponent of its size, a panel a collection of data.

    table: see `lesson.shares`.
    """
    groups = table.groupby("data", sort=False)
    fig, axes = panels(len(groups), height=3.0, sharey=True)
    for ax, (title, rows) in zip(axes, groups, strict=True):
        for domain, colour in DOMAINS.items():
            own = rows[rows["group"] == domain]
            ax.plot(own["exponent"], 100 * own["share"], color=colour, label=domain)
        ax.set(title=title, xlabel="exponent α", xlim=(1, 0), yscale="log")
        ax.set_xticks([1, 0.5, 0], ["1: by size", "0.5", "0: equally"])
    axes[0].set_ylabel("share of a batch (%)")
    return finish(fig)

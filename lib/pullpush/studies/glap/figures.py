"""Figures of chapter 5 that no general one draws: what a negative weighs, what grows with the batch, spoken words."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from pullpush.show.intervals import LOOKS
from pullpush.show.layout import finish, name_places, panels, plain_logarithm, spread_note
from pullpush.show.marks import band, dots, matrix
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PARTS, PURPLE, SKY, VERMILION, language_name

DOMAINS = {"sound": GREEN, "music": PURPLE, "speech": ORANGE}
LINES = (BLUE, VERMILION, SKY, BLACK)
COSTS = (GREY, BLUE, VERMILION, GREEN, SKY, PURPLE, ORANGE)  # parts of a step
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

    table: see `science.over_batch_sizes`; trained: the size in training, a thin line.
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

    weights: system → see `science.pair_weights`; domains: of the pairs.
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

    table: columns data, exponent, group, share.
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


def learnt_biases(table: pd.DataFrame, *, start: float) -> Figure:
    """The bias that was learnt over the size of the batch, beside that at which equal similarities are in balance.

    table: columns batch, seed, bias, tau; the bias beside s/τ; start: of all biases.
    """
    fig, (left, right) = panels(2, height=3.0)
    for ax, column, ylabel in ((left, "bias", "bias beside s/τ"), (right, "tau", "temperature τ")):
        band(ax, table, "batch", column, label="learnt", colour=VERMILION)
        ax.set(xscale="log", xlabel="clips in a batch", ylabel=ylabel)
        ax.set_xticks(sizes := sorted(table["batch"].unique()), [f"{size:g}" for size in sizes])
        ax.minorticks_off()
    balance = np.geomspace(table["batch"].min(), table["batch"].max(), 50)
    left.plot(balance, -np.log(balance - 1), "--", color=BLACK, linewidth=1.2, label="−log(N − 1)")
    left.axhline(start, color=GREY, linestyle=":", linewidth=1.2, label="at the start")
    return finish(fig, spread_note(table))


def cost_by_batch(table: pd.DataFrame, *, memory: float) -> Figure:
    """Hours of the whole training by part (left), and memory by what the loss holds (right), over the batch.

    table: of `benchmarks/scale.py`, one machine; memory: GB of a device.
    """
    fig, (left, right) = panels(2, height=3.4)
    for part, colour in zip(table.loc[:, "decoding":"optimiser"], COSTS, strict=True):
        left.plot(table["batch"], table[part], color=colour, label=part)
    for loss, style in (("plain", "-"), ("tiles", "--")):
        right.plot(table["batch"], table[f"GB of the loss, {loss}"], style, color=GREEN, label=f"loss, {loss}")
    right.axhline(memory, color=BLACK, linewidth=0.8)
    for ax, label in ((left, "hours"), (right, "GB of the loss on a device")):
        ax.set(xscale="log", yscale="log", xlabel="batch, pairs", ylabel=label)
        plain_logarithm(ax.xaxis)
    pairs = f"{table['pairs'].iloc[0] / 1e6:,.0f} million pairs"
    return finish(fig, f"{table['machine'].iloc[0]}, {pairs}; line on the right: its memory")


def keyword_accuracies(table: pd.DataFrame) -> Figure:
    """Single words by language, the most frequent of training first, and accuracy over the number of words.

    table: columns language, words, heard (bool), value, low, high, chance, length (fractions).
    """
    rows = table.sort_values(["heard", "value"], ascending=False).reset_index(drop=True)
    fig, (left, right) = panels(2, height=1.2 + 0.19 * len(rows))
    for (colour, marker), (heard, own) in zip(LOOKS, rows.groupby("heard", sort=False), strict=False):
        look = {"colour": colour, "marker": marker, "label": f"language {'' if heard else 'not '}in training"}
        dots(left, own, own.index, scale=100, **look)
        dots(right, own, own["words"], scale=100, upright=True, **look)
    left.plot(100 * rows["chance"], rows.index, "|", color=BLACK, markersize=9, label="chance")
    left.plot(100 * rows["length"], rows.index, "x", color=GREY, markersize=5, label="by length alone")
    name_places(left, [f"{language_name(row.language)} ({row.words})" for row in rows.itertuples()])
    left.set(xlabel="accuracy (%)", xlim=(0, None))
    right.set(xlabel="words to choose from", ylabel="accuracy (%)", ylim=(0, None), xscale="log")
    plain_logarithm(right.xaxis)
    return finish(fig, f"95 % intervals over seeds and words: {table['seeds'].max()} seeds")

"""Figures of the lab of chapter 5 that no general one draws: spoken words, biases, what is heard of a clip, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pullpush.show.intervals import LOOKS
from pullpush.show.layout import finish, name_places, panels, plain_logarithm, signed, spread_note
from pullpush.show.marks import band, dots
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, language_name
from pullpush.studies.glap.hearing import FIRST, GAIN, LOUDEST, NOISE, WHOLE, WINDOWS
from pullpush.studies.glap.scale import LOSSES, PARTS, Job, Machine, memory, sweep

WAYS: Mapping[str, str] = {
    FIRST: "seconds from the start",
    LOUDEST: "loudest seconds",
    WINDOWS: "seconds of a window, all averaged",
    GAIN: "gain, dB",
    NOISE: "clip over noise, dB",
}
OF_PARTS = (GREY, BLUE, VERMILION, GREEN, SKY, PURPLE, ORANGE)


def learnt_biases(table: pd.DataFrame, *, start: float) -> Figure:
    """The bias that was learnt over the size of the batch, beside that at which equal similarities are in balance.

    Args:
        table: columns batch, seed, bias, tau; the bias beside s/τ.
        start: of all biases.
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


def keyword_accuracies(table: pd.DataFrame) -> Figure:
    """Single words by language, the most frequent of training first, and accuracy over the number of words.

    table: columns language, words, heard (bool), value, low, high, chance, length (fractions).
    """
    rows = table.sort_values(["heard", "value"], ascending=False).reset_index(drop=True)
    fig, (left, right) = panels(2, height=1.2 + 0.19 * len(rows))
    for (colour, marker), (heard, own) in zip(LOOKS, rows.groupby("heard", sort=False), strict=False):
        look = {"colour": colour, "marker": marker, "label": f"language {'' if heard else 'never '}heard in training"}
        dots(left, own, own.index, scale=100, **look)
        dots(right, own, own["words"], scale=100, upright=True, **look)
    left.plot(100 * rows["chance"], rows.index, "|", color=BLACK, markersize=9, label="chance")
    left.plot(100 * rows["length"], rows.index, "x", color=GREY, markersize=5, label="by length alone")
    name_places(left, [f"{language_name(row.language)} ({row.words})" for row in rows.itertuples()])
    left.set(xlabel="accuracy (%)", xlim=(0, None))
    right.set(xlabel="words to choose from", ylabel="accuracy (%)", ylim=(0, None), xscale="log")
    plain_logarithm(right.xaxis)
    return finish(fig, f"95 % intervals over seeds and words: {table['seeds'].max()} seeds")


def hearing_curves(table: pd.DataFrame, ways: Sequence[str]) -> Figure:
    """A score over how clips are heard, a panel a way, a colour a test; dashed: whole clips.

    table: of `hearing.curve`, of one system and metric.
    """
    fig, axes = panels(len(ways), height=3.2, sharey=True)
    for ax, way in zip(axes, ways, strict=True):
        for (colour, _), (test, rows) in zip(LOOKS, table.groupby("test", sort=False), strict=False):
            part = rows[rows["way"] == way].sort_values("at")
            ax.plot(part["at"], 100 * part["value"], "o-", color=colour, label=str(test), markersize=3)
            ax.fill_between(part["at"], 100 * part["low"], 100 * part["high"], color=colour, alpha=0.18, linewidth=0)
            for value in rows.loc[rows["way"] == WHOLE, "value"]:
                ax.axhline(100 * value, color=colour, linestyle="--", linewidth=0.9)
        ax.set_xlabel(WAYS[way])
        _levels(ax, sorted(table.loc[table["way"] == way, "at"].unique()), logarithmic=way in (FIRST, LOUDEST, WINDOWS))
    axes[0].set_ylabel(f"{table['metric'].iloc[0]} (%)")
    return finish(fig, f"Bands: 95 % over seeds and clips, {table['seeds'].max()} seeds; dashed: whole clips")


def _levels(ax: Axes, places: Sequence[float], *, logarithmic: bool) -> None:
    if logarithmic:
        ax.set_xscale("log")
    ax.set_xticks(places, [signed(place) for place in places])
    ax.minorticks_off()


def cost_by_batch(job: Job, machine: Machine, batches: Sequence[int]) -> Figure:
    """Hours of the whole training by part (left), and memory by what the loss holds (right), over the batch.

    The same pairs are seen at every batch, so that only what grows with the square of the batch makes hours grow.
    """
    fig, (left, right) = panels(2, height=3.4)
    table = sweep(job, machine, batches)
    for part, colour in zip(PARTS, OF_PARTS, strict=True):
        left.plot(batches, table[part], color=colour, label=part)
    for loss, style in zip(LOSSES, ("-", "--"), strict=True):
        held = [memory(replace(job, batch=size, loss=loss), machine)["loss"] / 1e9 for size in batches]
        right.plot(batches, held, style, color=GREEN, label=f"loss, {loss}")
    right.axhline(machine.memory / 1e9, color=BLACK, linewidth=0.8)
    for ax, label in ((left, "hours"), (right, "GB of the loss on a device")):
        ax.set(xscale="log", yscale="log", xlabel="batch, pairs", ylabel=label)
        plain_logarithm(ax.xaxis)
    return finish(fig, f"{machine.label}, {job.pairs / 1e6:,.0f} million pairs; line on the right: its memory")

"""Figures of what the semantic radius does, taken apart; a colour and a marker a protocol, everywhere the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pullpush.show.intervals import intervals
from pullpush.show.layout import finish, mark_zero, panels, signed, whole_numbers
from pullpush.show.marks import band, dots
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from pullpush.studies.svr.drifts import DRIFTS
from pullpush.studies.svr.protocols import TITLES

COLOURS = dict(zip(TITLES, (BLUE, ORANGE, GREEN, PURPLE), strict=True))
MARKERS = dict(zip(TITLES, "os^D", strict=True))
QUANTITIES = {  # columns of `system_steps.step_of`
    "across/along": "across / along",
    "kept for pairs that fit": "step of pairs that fit / of others",
    "audio to audio": "sounds' gradient through t_sup",
}
CURVES = (BLACK, SKY, BLUE, GREEN, VERMILION, ORANGE, PURPLE)
SPANS = "95 % intervals over seeds and clips"


def _protocols(table: pd.DataFrame) -> list[str]:
    return [name for name in TITLES if name in set(table["protocol"])]


def effects(table: pd.DataFrame) -> Figure:
    """What each effect of the radius adds; see `decomposition.main_effects`; *alone* where the design's other cells
    were not trained.
    """
    titles = table["protocol"].map(TITLES)
    table = table.assign(protocol=titles.where(table["kind"] == "main", titles + " (alone)"))
    return intervals(table, rows="effect", colours="protocol", xlabel="what it adds to R@1 (points)")


def scaled_push(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against the factor of the push across the way, all of it and its sideways part; see
    `decomposition.scaled`.
    """
    parts = {"perpendicular": "all that is across", "sideways": "its sideways part"}
    counts = table.groupby(["protocol", "part"])["factor"].transform("size")
    fig, axes = panels(2, sharey=True)
    for ax, (part, title) in zip(axes, parts.items(), strict=True):
        rows = table[(table["part"] == part) & (counts > 1)]
        for protocol in _protocols(rows):
            curve = rows[rows["protocol"] == protocol]
            ax.plot(curve["factor"], 100 * curve["value"], color=COLOURS[protocol], linewidth=1)
        _marks(ax, rows, "factor", "factor of the push")
        ax.set_title(title)
    return _over_infonce(fig, SPANS)


def gains_by_quantity(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against what each system does to a step, a panel a quantity.

    table: `decomposition.over` joined with `system_steps.step_of`, a mark a system and protocol.
    """
    fig, axes = panels(len(QUANTITIES), sharey=True)
    for ax, (name, title) in zip(axes, QUANTITIES.items(), strict=True):
        _marks(ax, table, name, title)
    axes[0].set_yscale("symlog", linthresh=5)
    ticks = [-50, -20, -10, -5, -2.5, 0, 2.5, 5]
    axes[0].set_yticks(ticks, [signed(tick) for tick in ticks])
    return _over_infonce(fig, f"A mark a system; {SPANS}; logarithmic beyond ±5")


def drift_against_recall(runs: pd.DataFrame, *, metric: str = "R@1", without: Sequence[str] = ()) -> Figure:
    """Means of systems: R@1 over InfoNCE's against the cosine over InfoNCE's, a panel a reading of drift; see
    `drifts.drift_and_recall`.
    """
    means = runs[~runs["system"].isin(without)].groupby(["protocol", "system"])[[*DRIFTS, metric]].mean()
    over = (means - means.xs("infonce", level="system")).rename(columns={metric: "value"}).reset_index()
    fig, axes = panels(len(DRIFTS), sharey=True)
    for ax, (name, title) in zip(axes, DRIFTS.items(), strict=True):
        _marks(ax, over, name, "cosine − InfoNCE's:\n" + fill(title, 24))
        mark_zero(ax)
    return _over_infonce(fig, "A mark a system, means over seeds; to the right: less drift")


def _marks(ax: Axes, table: pd.DataFrame, x: str, xlabel: str) -> None:
    """R@1 in points over a column, a look a protocol."""
    for protocol in _protocols(table):
        rows = table[table["protocol"] == protocol]
        style = {"colour": COLOURS[protocol], "marker": MARKERS[protocol], "label": TITLES[protocol]}
        dots(ax, rows, rows[x], scale=100, upright=True, **style)
    mark_zero(ax, "y")
    ax.set_xlabel(xlabel)


def _over_infonce(fig: Figure, note: str) -> Figure:
    fig.axes[0].set_ylabel("R@1 − InfoNCE's (points)")
    return finish(fig, note)


def race(history: pd.DataFrame, systems: Mapping[str, str]) -> Figure:
    """Validation R@1 over epochs, a panel a protocol; history: of `Scores`; systems: label → what the legend says."""
    names = _protocols(history)
    fig, axes = panels(2, -(-len(names) // 2), height=2.6)
    for ax, protocol in zip(axes, names, strict=False):
        for colour, (system, label) in zip(CURVES, systems.items(), strict=False):
            rows = history[(history["protocol"] == protocol) & (history["system"] == system)]
            if len(rows):
                band(ax, rows.assign(**{"R@1": 100 * rows["R@1"]}), "epoch", "R@1", label=label, colour=colour)
        ax.set(title=TITLES[protocol], xlabel="epoch", ylabel="R@1 (%)")
        whole_numbers(ax)
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    return finish(fig, "Validation; means over seeds, bands from the least to the most")

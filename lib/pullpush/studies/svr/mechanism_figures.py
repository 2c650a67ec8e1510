"""Figures of what the semantic radius does, taken apart; a colour and a marker a protocol, everywhere the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import finish, mark_zero, panels, whole_numbers
from pullpush.show.marks import band, dots
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from pullpush.studies.svr.drifts import DRIFTS
from pullpush.studies.svr.protocols import TITLES

COLOURS = dict(zip(TITLES, (BLUE, ORANGE, GREEN, PURPLE), strict=True))
MARKERS = dict(zip(TITLES, "os^D", strict=True))
QUANTITIES = ("across/along", "kept for pairs that fit", "audio to audio")
CURVES = (BLACK, SKY, BLUE, GREEN, VERMILION, ORANGE, PURPLE)
SPANS = "95 % intervals over seeds and clips"


def _protocols(table: pd.DataFrame) -> list[str]:
    return [name for name in TITLES if name in set(table["protocol"])]


def scaled_push(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against the factor of the push across the way, all of it and its sideways part; see
    `decomposition.scaled`.
    """
    fig, axes = panels(2, sharey=True)
    parts = {"perpendicular": "all that is across", "sideways": "its sideways part"}
    for ax, (part, title) in zip(axes, parts.items(), strict=True):
        for protocol in _protocols(table):
            rows = table[(table["protocol"] == protocol) & (table["part"] == part)]
            if len(rows) < 2:
                continue
            ax.plot(rows["factor"], 100 * rows["value"], color=COLOURS[protocol], linewidth=1)
            style = {"colour": COLOURS[protocol], "marker": MARKERS[protocol], "label": TITLES[protocol]}
            dots(ax, rows, rows["factor"], scale=100, upright=True, **style)
        mark_zero(ax, "y")
        ax.set(xlabel="factor of the push", title=title)
    axes[0].set_ylabel("R@1 − InfoNCE's (points)")
    return finish(fig, SPANS)


def gains_by_quantity(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against what each system does to a step, a panel a quantity.

    table: `decomposition.over` joined with `system_steps.step_of`, a mark a system and protocol.
    """
    fig, axes = panels(len(QUANTITIES), sharey=True)
    titles = ("across / along", "step of pairs that fit / of others", "sounds' gradient through t_sup")
    for ax, name, title in zip(axes, QUANTITIES, titles, strict=True):
        for protocol in _protocols(table):
            rows = table[table["protocol"] == protocol]
            style = {"colour": COLOURS[protocol], "marker": MARKERS[protocol], "label": TITLES[protocol]}
            dots(ax, rows, rows[name], scale=100, upright=True, **style)
        mark_zero(ax, "y")
        ax.set_xlabel(title)
    axes[0].set_ylabel("R@1 − InfoNCE's (points)")
    axes[0].set_yscale("symlog", linthresh=5)
    axes[0].set_yticks([-50, -20, -10, -5, -2.5, 0, 2.5, 5], ["−50", "−20", "−10", "−5", "−2.5", "0", "2.5", "5"])
    return finish(fig, f"A mark a system; {SPANS}; logarithmic beyond ±5")


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


def drift_against_recall(runs: pd.DataFrame, *, metric: str = "R@1", without: Sequence[str] = ()) -> Figure:
    """Means of systems: R@1 over InfoNCE's against the cosine over InfoNCE's, a panel a reading of drift; see
    `drifts.drift_and_recall`.
    """
    fig, axes = panels(len(DRIFTS), sharey=True)
    means = runs[~runs["system"].isin(without)].groupby(["protocol", "system"])[[*DRIFTS, metric]].mean()
    for ax, (name, title) in zip(axes, DRIFTS.items(), strict=True):
        for protocol in _protocols(runs):
            rows = means.loc[protocol] - means.loc[(protocol, "infonce")]
            style = {"color": COLOURS[protocol], "label": TITLES[protocol]}
            ax.plot(rows[name], 100 * rows[metric], MARKERS[protocol], markersize=5, **style)
        mark_zero(ax)
        mark_zero(ax, "y")
        ax.set_xlabel("cosine − InfoNCE's:\n" + fill(title, 24))
    axes[0].set_ylabel("R@1 − InfoNCE's (points)")
    return finish(fig, "A mark a system, means over seeds; to the right: less drift")

"""Figures of chapter 2 that are no curves or intervals; a colour and a marker a protocol, everywhere the same."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels, signed, spread_note
from pullpush.show.marks import dots
from pullpush.show.palette import BLUE, GREEN, ORANGE, PURPLE, method_styles
from pullpush.studies.svr.data import TITLES
from pullpush.studies.svr.results import DRIFTS

COLOURS = dict(zip(TITLES, (BLUE, ORANGE, GREEN, PURPLE), strict=True))
MARKERS = dict(zip(TITLES, "os^D", strict=True))
QUANTITIES = {  # columns of `science.step_of`
    "across/along": "across / along",
    "kept for pairs that fit": "step of pairs that fit / of others",
    "audio to audio": "sounds' gradient through t_sup",
}
SPANS, OVER = "95 % intervals over seeds and clips", "R@1 − InfoNCE's (points)"


def score_by_setting(table: pd.DataFrame, settings: Mapping[str, str]) -> Figure:
    """R@1 at each value of some settings, which stand at equal distances, a panel a setting, a colour a system.

    table: columns setting, value, system, seed and R@1 (a fraction); settings: setting → label of its axis.
    """
    columns = min(3, len(settings))
    fig, axes = panels(columns, -(-len(settings) // columns), height=2.5)
    styles = method_styles(table["system"])
    styles = styles if len(styles) > 1 else {system: {"colour": BLUE} for system in styles}
    for ax, (setting, title) in zip(axes, settings.items(), strict=False):
        found = table[table["setting"] == setting]
        values, systems = sorted(found["value"].unique()), list(dict.fromkeys(found["system"]))
        for number, (system, runs) in enumerate(found.groupby("system", sort=False)):
            spread = runs.groupby("value")["R@1"].agg(["mean", "min", "max"])
            places = np.searchsorted(values, spread.index) + dodge(number, len(systems), 0.45)
            columns_of = {"value": "mean", "low": "min", "high": "max"}
            dots(ax, spread, places, scale=100, upright=True, **columns_of, **styles[system])
        name_places(ax, [signed(value) for value in values], axis="x")
        ax.set(xlabel=title, xlim=(-0.5, len(values) - 0.5))
    for ax in axes[::columns]:
        ax.set_ylabel("R@1 (%)")
    for ax in axes[len(settings) :]:
        ax.remove()
    return finish(fig, spread_note(table, "bar", within=("setting", "value", "system")))


def push_fan(table: pd.DataFrame) -> Figure:
    """The push on one anchor in the plane of û and what is across it, an arrow a radius; see `science.push_fan`."""
    titles = {"held": "probabilities of R = 0", "of t_sup": "probabilities of the support vector"}
    fig, axes = panels(2, sharex=True, sharey=True)
    for ax, (weights, title) in zip(axes, titles.items(), strict=True):
        rows = table[table["weights"] == weights]
        for row, shade in zip(rows.itertuples(), np.linspace(0.35, 1, len(rows)), strict=True):
            tip, colour = (row.parallel, row.perpendicular), to_rgba(BLUE, shade)
            ax.plot((0, tip[0]), (0, tip[1]), "-o", color=colour, markevery=[1], markersize=4, linewidth=1.5)
            ax.annotate(f"{row.fraction:g}", tip, (5, 2), textcoords="offset points", fontsize="small")
        ax.set(title=title, xlabel="along û")
        ax.margins(0.15)
        mark_zero(ax)
    axes[0].set(ylabel="across û", ylim=(0, None))
    return finish(fig, "A number is R over the distance of the pair")


def scaled_push(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against the factor of the push across the way, and of its sideways part; `results.scaled`."""
    parts = {"perpendicular": "all that is across", "sideways": "its sideways part"}
    counts = table.groupby(["protocol", "part"])["factor"].transform("size")
    fig, axes = panels(2, sharey=True)
    for ax, (part, title) in zip(axes, parts.items(), strict=True):
        rows = table[(table["part"] == part) & (counts > 1)]
        for protocol, curve in rows.groupby("protocol", sort=False):
            if len(curve) > 2:
                ax.plot(curve["factor"], 100 * curve["value"], color=COLOURS[protocol], linewidth=1)
        _marks(ax, rows, "factor", "factor of the push")
        ax.set_title(title)
    axes[0].set_ylabel(OVER)
    return finish(fig, SPANS)


def lead(table: pd.DataFrame, looks: Mapping[str, tuple[str, str]]) -> Figure:
    """What systems have over a baseline in each quarter of training, a panel a protocol; table: `results.lead`;
    looks: system → its name and colour.
    """
    titles = [name for name in TITLES if name in set(table["protocol"])]
    fig, axes = panels(2, -(-len(titles) // 2), height=2.3, sharey=True)
    for ax, protocol in zip(axes, titles, strict=False):
        shown = {name: look for name, look in looks.items() if name in set(table["system"])}
        for number, (system, (label, colour)) in enumerate(shown.items()):
            rows = table[(table["protocol"] == protocol) & (table["system"] == system)]
            at = rows["quarter"] + dodge(number, len(shown), 0.5)
            ax.plot(at, 100 * rows["value"], color=colour, linewidth=1)
            dots(ax, rows, at, scale=100, upright=True, colour=colour, label=label)
        mark_zero(ax, "y")
        ax.set(title=TITLES[protocol], xticks=range(1, 1 + table["quarter"].max()))
    for ax in axes[-2:]:
        ax.set_xlabel("quarter of training")
    for ax in axes[::2]:
        ax.set_ylabel("lead in R@1 (points)")
    return finish(fig, "95 % intervals over seeds; one temperature and rate for a system and InfoNCE")


def gains_by_quantity(table: pd.DataFrame) -> Figure:
    """R@1 over InfoNCE's against what each system does to a step; `results.over` joined with `science.step_of`."""
    fig, axes = panels(len(QUANTITIES), sharey=True)
    for ax, (name, title) in zip(axes, QUANTITIES.items(), strict=True):
        _marks(ax, table, name, title)
    axes[0].set_yscale("symlog", linthresh=5)
    ticks = [-50, -20, -10, -5, -2.5, 0, 2.5, 5]
    axes[0].set_yticks(ticks, [signed(tick) for tick in ticks])
    axes[0].set_ylabel(OVER)
    return finish(fig, f"A mark a system; {SPANS}; logarithmic beyond ±5")


def drift_against_recall(runs: pd.DataFrame, *, without: Sequence[str] = ()) -> Figure:
    """Means of systems: R@1 over InfoNCE's against the cosine over InfoNCE's; table: `results.drift_and_recall`."""
    means = runs[~runs["system"].isin(without)].groupby(["protocol", "system"])[[*DRIFTS, "R@1"]].mean()
    over = (means - means.xs("infonce", level="system")).rename(columns={"R@1": "value"}).reset_index()
    fig, axes = panels(len(DRIFTS), sharey=True)
    for ax, (name, title) in zip(axes, DRIFTS.items(), strict=True):
        _marks(ax, over, name, "cosine − InfoNCE's:\n" + fill(title, 24))
        mark_zero(ax)
    axes[0].set_ylabel(OVER)
    return finish(fig, "A mark a system, means over seeds; to the right: less drift")


def _marks(ax: Axes, table: pd.DataFrame, x: str, xlabel: str) -> None:
    """R@1 in points over a column, a look a protocol."""
    for protocol in (name for name in TITLES if name in set(table["protocol"])):
        rows = table[table["protocol"] == protocol]
        style = {"colour": COLOURS[protocol], "marker": MARKERS[protocol], "label": TITLES[protocol]}
        dots(ax, rows, rows[x], scale=100, upright=True, **style)
    mark_zero(ax, "y")
    ax.set_xlabel(xlabel)

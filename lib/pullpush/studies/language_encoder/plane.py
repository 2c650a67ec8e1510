"""Marks in a plane of two measures: systems with intervals both ways, arrows between them, numbers beside them.

A system's colour says which sentence term it has, its mark whether it has the cyclic terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION

TERMS = {  # by a system's last letter
    "": (BLUE, "no sentence term"),
    "s": (VERMILION, "s: SimCSE on captions"),
    "n": (GREEN, "n: NLI triples"),
    "e": (PURPLE, "e: SimCSE on NLI sentences"),
}
CYCLIC = {False: ("o", "without cyclic terms"), True: ("s", "Cy: with cyclic terms")}
# Where a number may stand beside its mark: points to the right and up, and how it is aligned there.
PLACES = (
    (6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
    (0, 8, "center", "bottom"), (0, -8, "center", "top"), (12, 14, "left", "bottom"), (-12, -14, "right", "top"),
)  # fmt: skip
MARK = 5  # pixels from the middle of a mark to its edge


def term(system: str) -> str:
    """The letter of a system's sentence term, "" without one.

    >>> term("CyCLAPs"), term("CLIP")
    ('s', '')
    """
    return system[-1] if system[-1] in TERMS else ""


def system_style(system: str) -> dict[str, Any]:
    """Label, colour and marker of a system.

    >>> system_style("CyCLAPs")
    {'label': 'CyCLAPs', 'colour': '#D55E00', 'marker': 's'}
    """
    return {"label": system, "colour": TERMS[term(system)][0], "marker": CYCLIC[system.startswith("Cy")][0]}


def cross(ax: Axes, row: pd.Series) -> None:
    """A system's mark with its intervals in both directions: system, x, "x low", "x high", y …"""
    style = system_style(row["system"])
    spans: dict[str, Any] = {
        f"{axis}err": [[row[axis] - row[f"{axis} low"]], [row[f"{axis} high"] - row[axis]]] for axis in "xy"
    }
    ax.errorbar(row["x"], row["y"], fmt=style["marker"], color=style["colour"], markersize=6, elinewidth=1.2, **spans)


def arrow(ax: Axes, start: pd.Series, end: pd.Series) -> None:
    """From a system to what has one term more; dotted where that is the cyclic terms."""
    line = "-" if term(end["system"]) else ":"
    look: dict[str, Any] = {
        "arrowstyle": "->",
        "color": GREY,
        "linewidth": 1,
        "linestyle": line,
        "shrinkA": 5,
        "shrinkB": 5,
    }
    ax.annotate("", (end["x"], end["y"]), (start["x"], start["y"]), arrowprops=look, zorder=1)


def keys(systems: Sequence[str]) -> list[Line2D]:
    """Entries of a legend: what a colour and what a mark say."""
    terms, cyclic = ({kind(system) for system in systems} for kind in (term, lambda system: system.startswith("Cy")))
    colours = [_key("o", colour, text) for letter, (colour, text) in TERMS.items() if letter in terms]
    marks = [_key(mark, BLACK, text) for has, (mark, text) in CYCLIC.items() if has in cyclic]
    return colours + marks


def arrow_keys() -> list[Line2D]:
    """Entries of a legend: what an arrow says."""
    look: dict[str, Any] = {"color": GREY, "linewidth": 1}
    dotted = Line2D([], [], linestyle=":", label="adds the cyclic terms", **look)
    return [Line2D([], [], label="adds a sentence term", **look), dotted]


def write_beside(fig: Figure, texts: Sequence[tuple[Axes, Mapping[str, Any], str]]) -> None:
    """Text beside each place (Axes, row with system, x and y, text), where it covers no other and no mark, if it can.

    fig: finished, for its panels must stand where they will.
    """
    fig.canvas.draw()
    taken = []
    for ax, row, _ in texts:
        x, y = ax.transData.transform((row["x"], row["y"]))
        taken.append(Bbox([[x - MARK, y - MARK], [x + MARK, y + MARK]]))
    for ax, row, text in texts:
        colour = system_style(row["system"])["colour"]
        for number, (x, y, across, up) in enumerate(PLACES):
            note = ax.annotate(
                text, (row["x"], row["y"]), (x, y), textcoords="offset points", ha=across, va=up, color=colour,
                fontsize="small",
            )  # fmt: skip
            box = note.get_window_extent()
            if number == len(PLACES) - 1 or not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            note.remove()


def _key(marker: str, colour: str, label: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label)

"""The figure of most comparisons: a dot with its interval for each row, colours that tell systems apart, panels.

intervals(gains, rows="system", colours="metric", xlabel="gain (points)")
"""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pullpush.show import layout
from pullpush.show.layout import dodge, finish, limits, mark_zero, name_places, panels as make_panels, scale_points
from pullpush.show.marks import dots
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (ORANGE, "v"), (PURPLE, "D"), (SKY, "P"), (BLACK, "X"))
LINE = 26  # characters of a name beside a row
PAPER: dict[str, Any] = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none"}
CHANCE: dict[str, Any] = {"marker": "|", "color": BLACK, "markersize": 14, "linestyle": "none"}


def intervals(
    table: pd.DataFrame,
    *,
    rows: str = "system",
    colours: str = "",
    panels: str = "",
    xlabel: str | Mapping[str, str] = "",
    names: Mapping[Any, str] | None = None,
    looks: Mapping[str, tuple[str, str]] | None = None,
    scale: float | Mapping[str, float] = 100,
    items: str = "clips",
    below: str = "",
) -> Figure:
    """Numbers with their 95 % intervals.

    Args:
        table: columns value, low and high, as `lab.comparisons` gives them; with a half width they are differences,
            and zero is marked. Columns paper and chance, where there are any, are drawn as diamonds and bars.
        rows: the column that names places, from the top.
        colours: the column that tells marks at one place apart, "" for none.
        panels: the column that tells panels apart, "" for one.
        xlabel: of every panel, or of each by its value of `panels`.
        names: value of any of these columns → what is written of it; default: the value.
        looks: value of `colours` → colour and marker; default: LOOKS in turn.
        scale: factor on the numbers, 100 for percent and points; or of each panel, where they differ in their unit.
        items: what seeds are crossed with, for the note below.
        below: another note, of intervals that are over something else.

    Example:
        >>> table = pd.DataFrame({"system": ["a", "b"], "value": [0.1, 0.2], "low": [0, 0.1], "high": [0.2, 0.3]})
        >>> intervals(table, xlabel="R@1 (%)").axes[0].get_xlabel()
        'R@1 (%)'
    """
    if table.empty:
        return finish(make_panels(1, height=0.6)[0], "nothing was measured of this")
    written = {str(key): value for key, value in (names or {}).items()}
    places, kinds, parts = (list(dict.fromkeys(table[name])) if name else [None] for name in (rows, colours, panels))
    titles = [textwrap.fill(written.get(str(place), str(place)), LINE) for place in places]
    height = 1.2 + sum(max(0.16 + 0.12 * len(kinds), 0.16 * (title.count("\n") + 1)) for title in titles)
    fig, axes = make_panels(len(parts), height=height, sharey=True)
    for ax, part in zip(axes, parts, strict=True):
        in_panel = table if part is None else table[table[panels] == part]
        label_x = xlabel[str(part)] if isinstance(xlabel, Mapping) else xlabel
        factor = scale[str(part)] if isinstance(scale, Mapping) else scale
        for number, kind in enumerate(kinds):
            marks = in_panel if kind is None else in_panel[in_panel[colours] == kind]
            colour, marker = (looks or {}).get(str(kind), LOOKS[number % len(LOOKS)])
            label = written.get(str(kind), str(kind)) if len(kinds) > 1 else ""
            marks = marks.drop_duplicates(rows).set_index(rows).reindex(places)
            at = np.arange(len(places)) + dodge(number, len(kinds), 0.6)
            dots(ax, marks, at, scale=factor, colour=colour, marker=marker, label=label)
            if "paper" in marks and marks["paper"].notna().any():
                ax.plot(factor * marks["paper"], at, label="paper", **PAPER)
        if "half width" in table:
            mark_zero(ax)
        if "chance" in table:
            ax.set_xlim(min(0, ax.get_xlim()[0]), None)
            chance = in_panel.groupby(rows)["chance"].first().reindex(places)
            ax.plot(factor * chance, np.arange(len(places)), label="chance", **CHANCE)
        remark = ""
        if "half width" in table and factor == 100:  # points: one scale for all panels that show them
            shared = table[table[panels].astype(str).map(dict(scale)) == 100] if isinstance(scale, Mapping) else table
            remark = scale_points(ax, *limits(100 * shared[[*shared.columns.intersection(["low", "high", "paper"])]]))
        label_x = label_x.replace("points", f"points{remark}") if "points" in label_x else label_x + remark
        ax.set(xlabel=label_x, title="" if part is None else written.get(str(part), str(part)))
    name_places(axes[0], titles)
    return finish(fig, below or note(table, items))


def note(table: pd.DataFrame, items: str = "clips") -> str:
    """What intervals are over: "95 % intervals over seeds and clips: 5 seeds, up to 400 clips".

    table: with columns seeds and clips, where it says how many.
    """
    over = f"95 % intervals over seeds and {items}"
    if table.empty or "seeds" not in table:
        return over
    return f"{over}: {layout.span(table['seeds'])} seeds, up to {table['clips'].max():.0f} {items}"

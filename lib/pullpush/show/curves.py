"""The figure of most courses: numbers over a continuous x, means of the seeds in a band from the least to the most.

curves(table, "step", "angle", colours="system", panels="part", ylabel="angle (°)")
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from pullpush.show.layout import finish, panels, panels as make_panels, plain_logarithm, spread_note
from pullpush.show.marks import band
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, method_styles

STROKES = ("-", "--", ":", "-.")
FEW = 10  # places up to which each is marked


def curves(
    table: pd.DataFrame,
    x: str,
    y: str = "value",
    *,
    colours: str = "system",
    lines: str = "",
    panels: str = "",
    xlabel: str | Mapping[str, str] = "",
    ylabel: str | Mapping[str, str] = "",
    titles: Mapping[str, str] | None = None,
    scale: float = 1.0,
    log_x: bool = False,
    log_y: Container[str] = (),
) -> Figure:
    """A line and a band for each group of rows.

    Args:
        table: tidy, with a column seed; rows without a `y` are left out.
        x, y: columns of numbers.
        colours: the column of systems; lines: of what tells lines of one colour apart; panels: of panels; "" for none.
        xlabel, ylabel: of all panels, or of each by its value of `panels`; a y-axis of its own where they differ.
        titles: value of `panels` → title; default: the value, or none where the label of its x-axis says it.
        scale: factor on y, 100 for percent.
        log_x, log_y: whether x is logarithmic, to the base of two; panels with a logarithmic y.

    Example:
        >>> table = pd.DataFrame({"step": [1, 2, 3], "loss": [3, 2, 1], "seed": 0, "system": "kcl"})
        >>> curves(table, "step", "loss", ylabel="loss").axes[0].get_ylabel()
        'loss'
    """
    table = table.dropna(subset=[y])
    parts = list(dict.fromkeys(table[panels])) if panels else [""]
    styles = method_styles(table[colours])
    strokes: dict[str, Any] = dict(zip(dict.fromkeys(table[lines]), STROKES, strict=False)) if lines else {"": "-"}
    apart, explained = isinstance(ylabel, Mapping), isinstance(xlabel, Mapping)
    fig, axes = make_panels(len(parts), height=3.0, sharey=not apart)
    for ax, part in zip(axes, parts, strict=True):
        in_panel = table[table[panels] == part] if panels else table
        for keys, rows in in_panel.groupby([colours, *([lines] if lines else [])], sort=False):
            style, stroke = styles[keys[0]], strokes[keys[1] if lines else ""]
            stroke += "o" if not lines and rows[x].nunique() <= FEW else ""
            band(ax, rows, x, y, style=stroke, label=style["label"], colour=style["colour"], scale=scale)
        ax.set_xlabel(xlabel[part] if isinstance(xlabel, Mapping) else xlabel)
        ax.set_title((titles or {}).get(part, "" if explained else part))
        if ax is axes[0] or apart:
            ax.set_ylabel(ylabel[part] if isinstance(ylabel, Mapping) else ylabel)
    for ax, part in zip(axes, parts, strict=True):  # when all is drawn, for panels may share an axis
        _axes(ax, log_x, part in log_y, ticks=9 if len(parts) < 3 else 5)
    keys = [Line2D([], [], color=style["colour"], label=style["label"]) for style in styles.values()]
    keys += [Line2D([], [], color=BLACK, linestyle=stroke, label=line) for line, stroke in strokes.items() if line]
    handles: list[Any] | None = keys if lines else None
    return finish(fig, spread_note(table), handles=handles)


def _axes(ax: Axes, log_x: bool, log_y: bool, *, ticks: int) -> None:
    """Linear axes begin at zero and count in whole numbers; logarithmic ones have plain numbers."""
    if log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(ScalarFormatter())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(ticks, integer=True))
    if log_y:
        ax.set_yscale("log")
        plain_logarithm(ax.yaxis)
    else:
        ax.set_ylim(0, None)


def word_frequencies(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3 of the language-encoder paper: relative word frequency over rank, one curve a caption set."""
    fig, (ax,) = panels(1, height=3.3, width=6)
    for (name, table), colour in zip(tables.items(), [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY], strict=False):
        ax.loglog(table["rank"], table["frequency"], color=colour, label=f"{name} ({len(table):,} words)")
    ax.set(xlabel="rank of the word, from frequent to rare", ylabel="share of all words")
    return finish(fig)

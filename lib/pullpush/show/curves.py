"""The figure of most courses: numbers over a continuous x, means of the seeds in a band from the least to the most.

curves(table, "step", "angle", colours="system", panels="part", ylabel="angle (°)")
"""

from collections.abc import Container, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from pullpush.show.layout import finish, mark_zero, panels, panels as make_panels, plain_logarithm, spread_note
from pullpush.show.marks import band
from pullpush.show.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, method_styles

STROKES = ("-", "--", ":", "-.")
FEW = 10  # places up to which each is marked
BESIDE = 3  # panels in one row


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
    looks: Mapping[str, tuple[str, str]] | None = None,
    scale: float = 1.0,
    log_x: bool = False,
    log_y: Container[str] = (),
    apart: str = "",
) -> Figure:
    """A line and a band for each group of rows; more than three panels stand in two rows.

    Args:
        table: tidy, with a column seed; rows without a `y` are left out.
        x, y: columns of numbers.
        colours: the column of systems; lines: of what tells lines of one colour apart; panels: of panels; "" for none.
        xlabel, ylabel: of all panels, or of each by its value of `panels`; a y-axis of its own where they differ.
        titles: value of `panels` → title; default: the value, or none where the label of its x-axis says it.
        looks: value of `colours` → its name and colour; default: those of methods.
        scale: factor on y, 100 for percent.
        log_x, log_y: whether x is logarithmic; panels with a logarithmic y.
        apart: a column, such as "seed": a thin line for each of its values instead of the band; see `marks.band`.

    Example:
        >>> table = pd.DataFrame({"step": [1, 2, 3], "loss": [3, 2, 1], "seed": 0, "system": "kcl"})
        >>> curves(table, "step", "loss", ylabel="loss").axes[0].get_ylabel()
        'loss'
    """
    table = table.dropna(subset=[y])
    parts = list(dict.fromkeys(table[panels])) if panels else [""]
    parted = [name for name in (colours, lines, panels) if name]
    styles = {name: {"label": label, "colour": colour} for name, (label, colour) in (looks or {}).items()}
    styles = styles or method_styles(table[colours])
    strokes: dict[str, Any] = dict(zip(dict.fromkeys(table[lines]), STROKES, strict=False)) if lines else {"": "-"}
    own_y, own_x = isinstance(ylabel, Mapping), isinstance(xlabel, Mapping)
    columns = len(parts) if len(parts) <= BESIDE else -(-len(parts) // 2)
    rows_of = -(-len(parts) // columns)
    fig, axes = make_panels(columns, rows_of, height=3.0 if rows_of == 1 else 2.5, sharey=not own_y)
    for number, (ax, part) in enumerate(zip(axes, parts, strict=False)):
        in_panel = table[table[panels] == part] if panels else table
        for keys, rows in in_panel.groupby(parted, sort=False):
            if keys[0] not in styles:
                continue
            style, stroke = styles[keys[0]], strokes[keys[1] if lines else ""]
            stroke += "o" if not lines and rows[x].nunique() <= FEW else ""
            band(ax, rows, x, y, style=stroke, scale=scale, apart=apart, **style)
        label = xlabel[part] if isinstance(xlabel, Mapping) else xlabel
        ax.set_xlabel(label if own_x or number >= len(parts) - columns else "")
        ax.set_title((titles or {}).get(part, "" if own_x else part))
        if own_y or number % columns == 0:
            ax.set_ylabel(ylabel[part] if isinstance(ylabel, Mapping) else ylabel)
        _axis_of_x(ax, in_panel[x], log_x, ticks=9 if columns < BESIDE else 5)
    for ax, part in zip(axes, parts, strict=False):  # when all is drawn, for panels may share an axis
        _axis_of_y(ax, part in log_y)
    for ax in axes[len(parts) :]:
        ax.remove()
    keys = [Line2D([], [], color=style["colour"], label=style["label"]) for style in styles.values()]
    keys += [Line2D([], [], color=BLACK, linestyle=stroke, label=line) for line, stroke in strokes.items() if line]
    note = f"A line a seed ({table['seed'].nunique()})" if apart else spread_note(table, within=parted)
    return finish(fig, note, handles=keys if lines else None if len(styles) > 1 else [])


def _axis_of_x(ax: Axes, values: pd.Series, log: bool, *, ticks: int) -> None:
    """A linear axis counts in whole numbers; a logarithmic one names the values that were measured, where they are few.

    It does so after what is drawn, as ticks depend on that.
    """
    if not log:
        whole = bool((values == values.round()).all())
        ax.xaxis.set_major_locator(MaxNLocator(ticks, integer=whole))
        return
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    if values.nunique() <= FEW:
        places = sorted(values.unique())
        ax.set_xticks(places, [f"{value:g}" for value in places], rotation=45 if len(places) > ticks / 2 else 0)
        ax.set_xticks([], minor=True)


def _axis_of_y(ax: Axes, log: bool) -> None:
    """A linear axis has its zero, marked where numbers lie below it; a logarithmic one has plain numbers."""
    if log:
        ax.set_yscale("log")
        plain_logarithm(ax.yaxis)
    elif any(other.dataLim.y0 < 0 for other in ax.get_shared_y_axes().get_siblings(ax)):
        mark_zero(ax, "y")
    else:
        ax.set_ylim(0, None)


def word_frequencies(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3 of the language-encoder paper: relative word frequency over rank, one curve a caption set."""
    fig, (ax,) = panels(1, height=3.3, width=6)
    for (name, table), colour in zip(tables.items(), [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY], strict=False):
        ax.loglog(table["rank"], table["frequency"], color=colour, label=f"{name} ({len(table):,} words)")
    ax.set(xlabel="rank of the word, from frequent to rare", ylabel="share of all words")
    return finish(fig)

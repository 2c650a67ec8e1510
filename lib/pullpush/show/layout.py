"""Panels, legends and axes, the same in every figure."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

from pullpush.show.palette import BLACK, GREY

PAGE_WIDTH = 7.5  # inches: as wide as a page shows without shrinking the letters
LINEAR = 3  # points of a score up to which a logarithmic axis of differences is linear


def panels(columns: int, rows: int = 1, *, height: float = 3.0, width: float = PAGE_WIDTH, **shared) -> tuple:
    """A figure and its panels, row by row.

    Args:
        columns, rows: of panels.
        height: of a row, inches; width: of the figure.
        shared: `sharex` and `sharey` of `matplotlib.pyplot.subplots`.

    Returns:
        The figure and a tuple of Axes.

    Example:
        >>> figure, (left, right) = panels(2)
    """
    fig, axes = plt.subplots(rows, columns, figsize=(width, rows * height), squeeze=False, **shared)
    return fig, tuple(axes.flat)


def finish(fig: Figure, note: str = "", *, handles: Sequence[Artist] | None = None) -> Figure:
    """The figure with its legend above all panels, each label once, and a note below them.

    Args:
        fig: with labelled marks.
        note: what lines, bands and bars are, and over how many seeds; see `spread_note`.
        handles: of the legend, where those of the marks will not do; an empty list: no legend.
    """
    if handles is None:
        labelled = [zip(*ax.get_legend_handles_labels(), strict=True) for ax in fig.axes]
        handles = list({label: handle for pairs in labelled for handle, label in pairs}.values())
    labels = [str(handle.get_label()) for handle in handles]
    if labels:
        widest = max(map(len, labels)) * 0.068 + 0.55  # inches of an entry
        columns = max(1, min(len(labels), int(fig.get_figwidth() / widest)))
        columns = -(-len(labels) // -(-len(labels) // columns))  # rows of about equal length
        fig.legend(handles, labels, loc="outside upper center", ncols=columns)
    if note:
        fig.supxlabel(note, fontsize="small", color=GREY)
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
                axis.set_major_formatter(PlainNumbers())
            if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
                axis.set_minor_formatter(PlainNumbers())
    return fig


class PlainNumbers(LogFormatterSciNotation):
    """Labels of the ticks that matplotlib labels on a logarithmic axis, without mathematics: figures parse none."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return signed(x) if super().__call__(x, pos) else ""


def spread_note(table: pd.DataFrame, mark: str = "band", *, within: Sequence[str] = ()) -> str:
    """What a band or a bar spans, and over how many seeds.

    Args:
        table: with a column seed.
        mark: "band" or "bar".
        within: columns whose groups may have different numbers of seeds.

    Example:
        >>> spread_note(pd.DataFrame({"seed": [0, 0, 1]}))
        'Means of 2 seeds; bands from the least to the most'
    """
    counts = table.groupby(list(within))["seed"].nunique() if within else pd.Series([table["seed"].nunique()])
    if counts.max() == 1:
        return "One seed"
    return f"Means of {span(counts)} seeds; {mark}s from the least to the most"


def span(counts: pd.Series) -> str:
    """From the least to the most: "3 to 10", or "5" where all are alike."""
    return " to ".join(dict.fromkeys(f"{count:.0f}" for count in (counts.min(), counts.max())))


def name_places(ax: Axes, names: Sequence[str], *, axis: str = "y", rotation: float = 0) -> None:
    """Name the places 0, 1, 2 … of an axis; those of the y-axis from the top."""
    if axis == "x":
        ax.set_xticks(range(len(names)), names, rotation=rotation, ha="right" if rotation else "center")
        ax.grid(axis="x", visible=False)
    else:
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)


def dodge(number: int, count: int, width: float = 0.6) -> float:
    """How far from its place the mark of group `number` of `count` stands, so that none covers another.

    Example:
        >>> [dodge(number, 3) for number in range(3)]
        [-0.2, 0.0, 0.2]
    """
    return round(width * (number - (count - 1) / 2) / max(count, 1), 6)


def plain_logarithm(axis: Axis) -> None:
    """Ticks at 1, 2, 5, 10 …, or at the powers of ten alone where there are many, in plain numbers.

    axis: logarithmic already, with all its data.
    """
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if high > 300 * low else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def mark_zero(ax: Axes, axis: str = "x") -> None:
    """A thin line where nothing is gained and nothing lost."""
    (ax.axvline if axis == "x" else ax.axhline)(0, color=BLACK, linewidth=0.8, zorder=1)


def signed(number: float, form: str = "g") -> str:
    """A number with a true minus sign.

    Example:
        >>> signed(-0.5)
        '−0.5'
    """
    return format(number, form).replace("-", "−")


def scale_points(ax: Axes, low: float, high: float) -> str:
    """Limits of an x-axis of differences in points; logarithmic outside of ±LINEAR where one would flatten the others.

    Returns:
        What its label says of that, "" if it is linear.
    """
    pad = 0.05 * (high - low or 1)
    ax.set_xlim(low - pad, high + pad)
    if max(-low, high) <= 4 * LINEAR:
        return ""
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=1)
    ticks = sorted({sign * size for sign in (-1, 1) for size in (0, 1, 3, 10, 30) if low <= sign * size <= high})
    ax.set_xticks(ticks, [signed(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(min(low, 0) * 1.25 - 0.3, max(high, 0) * 1.25 + 0.3)
    return f", logarithmic beyond ±{LINEAR}"


def limits(*arrays: np.ndarray | pd.Series) -> tuple[float, float]:
    """The least and the most of all numbers that are finite, zero included."""
    values = np.concatenate([np.asarray(array, dtype=float).ravel() for array in arrays])
    values = values[np.isfinite(values)]
    return min(0.0, *values), max(0.0, *values)

"""The six marks that figures are composed of.

A mark draws numbers on an Axes: `band` over a continuous x, `dots` with intervals over names, `bars`, `density`,
`scatter` and `matrix`. Colours and labels come from `palette`, panels and legends from `layout`; what to draw is the
figure's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from pullpush.show.palette import BLUE

LINE = 3  # places on the x-axis: with fewer there is no line, only dots


def band(
    ax: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    label: str = "",
    colour: str = BLUE,
    style: str = "-",
    scale: float = 1.0,
    apart: str = "",
) -> None:
    """A line through the means of the rows that share `x` (the seeds), in a band from the least to the most of them.

    Two places or one are dots with bars, for a line would show a course that nobody has seen.

    Args:
        table: tidy; rows without a `y` are left out.
        x, y: columns of numbers.
        label: for the legend; colour: of line and band; style: of the line, as matplotlib writes it.
        scale: factor on `y`, 100 for percent.
        apart: a column, such as "seed": a thin line for each of its values instead of the band, where their mean would
            show what none of them did.

    Example:
        >>> from pullpush.show.layout import panels
        >>> table = pd.DataFrame({"step": [1, 1, 2, 2, 3, 3], "loss": [3, 4, 2, 3, 1, 2], "seed": [0, 1] * 3})
        >>> figure, (ax,) = panels(1)
        >>> band(ax, table, "step", "loss")
        >>> ax.lines[0].get_ydata().tolist()
        [3.5, 2.5, 1.5]
    """
    rows = table.dropna(subset=[y]).assign(**{y: lambda found: scale * found[y]})
    by_x = rows.groupby(x)[y]
    middle = by_x.mean()
    if len(middle) < LINE:
        summary = pd.DataFrame({"value": middle, "low": by_x.min(), "high": by_x.max()})
        dots(ax, summary, middle.index, label=label, colour=colour, upright=True)
    elif apart:
        for number, (_, part) in enumerate(rows.groupby(apart)):
            ax.plot(part[x], part[y], style, color=colour, linewidth=1.2, label="" if number else label)
    else:
        ax.plot(middle.index, middle, style, color=colour, label=label)
        ax.fill_between(middle.index, by_x.min(), by_x.max(), color=colour, alpha=0.18, linewidth=0)


def dots(
    ax: Axes,
    table: pd.DataFrame,
    places: ArrayLike,
    *,
    value: str = "value",
    low: str = "low",
    high: str = "high",
    label: str = "",
    colour: str = BLUE,
    marker: str = "o",
    scale: float = 1.0,
    upright: bool = False,
) -> None:
    """A dot with its interval for each row.

    Args:
        table: columns `value` and, with the interval, `low` and `high`.
        places: `(rows,)` on the axis of names.
        label, colour, marker: as in matplotlib.
        scale: factor on the numbers, 100 for percent.
        upright: names on the x-axis, values on the y-axis; otherwise the other way round.

    Example:
        >>> from pullpush.show.layout import panels
        >>> figure, (ax,) = panels(1)
        >>> dots(ax, pd.DataFrame({"value": [0.1, 0.4], "low": [0, 0.3], "high": [0.2, 0.5]}), [0, 1], scale=100)
        >>> ax.lines[0].get_xdata().tolist()
        [10.0, 40.0]
    """
    middle = scale * table[value].to_numpy(dtype=float)
    span = np.abs(scale * table[[low, high]].to_numpy(dtype=float).T - middle) if low in table else None
    at, error = ((places, middle), "yerr") if upright else ((middle, places), "xerr")
    spans: dict[str, Any] = {error: span}
    ax.errorbar(*at, **spans, fmt=marker, color=colour, label=label, markersize=5, elinewidth=1.5)


def bars(
    ax: Axes,
    places: ArrayLike,
    sizes: ArrayLike,
    *,
    start: ArrayLike = 0.0,
    width: float = 0.75,
    label: str = "",
    colour: str = BLUE,
    upright: bool = True,
) -> None:
    """Bars of `sizes` from `start`: counts, parts that add up, or, lying, what lasts from when to when.

    Args:
        places: `(bars,)` in the middle of each.
        sizes, start: `(bars,)` or one number, along the other axis.
        width: across, in units of the places.

    Example:
        >>> from pullpush.show.layout import panels
        >>> figure, (ax,) = panels(1)
        >>> bars(ax, [0, 1], [2.0, 3.0], label="queries")
        >>> [float(bar.get_height()) for bar in ax.patches]
        [2.0, 3.0]
    """
    if upright:
        ax.bar(places, sizes, bottom=start, width=width, color=colour, label=label)
        ax.grid(axis="x", visible=False)
    else:
        ax.barh(places, sizes, left=start, height=width, color=colour, label=label)


def density(
    ax: Axes, values: ArrayLike, *, label: str = "", colour: str = BLUE, limits: tuple[float, float] | None = None
) -> None:
    """How dense `(N,)` values lie: Gaussian kernels, Scott's bandwidth.

    limits: where values can lie; the curve ends a bandwidth outside of the values, and never outside of these.
    """
    numbers = np.asarray(values, dtype=float)
    sns.kdeplot(x=numbers, ax=ax, color=colour, label=label, clip=limits, cut=1, gridsize=300)
    ax.set(xlabel="", ylabel="")


def scatter(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    *,
    sizes: ArrayLike = 20.0,
    colours: str | Sequence[str] = BLUE,
    marker: str = "o",
    label: str = "",
    alpha: float = 1.0,
) -> None:
    """Points of a map; `sizes` are areas in square points, for all or for each."""
    edge: dict[str, Any] = {} if marker in "+x|_" else {"edgecolors": "#44444466", "linewidths": 0.4}
    ax.scatter(x, y, s=sizes, c=colours, marker=marker, label=label, alpha=alpha, zorder=2, **edge)


def matrix(
    ax: Axes,
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    label: str = "",
    colours: str = "cividis",
) -> AxesImage:
    """An image of `(rows, columns)` numbers, the first row on top, with its scale beside it if that has a label."""
    image = ax.imshow(
        np.asarray(values), cmap=colours, vmin=limits[0], vmax=limits[1], interpolation="nearest", aspect="auto"
    )
    ax.grid(False)
    if label:
        ax.figure.colorbar(image, ax=ax, label=label)
    return image

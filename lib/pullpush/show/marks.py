"""Marks that figures are composed of: each draws a tidy table on an Axes."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes


def band(ax: Axes, table: pd.DataFrame, x: str, y: str, *, label: str, colour: str, style: str = "-") -> None:
    """Draw the mean of `y` over the rows that share `x` (the seeds), with its minimum–maximum band."""
    by_x = table.dropna(subset=[y]).groupby(x)[y]
    mean = by_x.mean()
    ax.plot(mean.index, mean, style, color=colour, label=label)
    ax.fill_between(mean.index, by_x.min(), by_x.max(), color=colour, alpha=0.18, linewidth=0)

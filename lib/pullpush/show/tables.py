"""Tables for a page: no index, short cells unbroken, true minus signs."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from pullpush.show.markup import safe

LONGEST_UNBROKEN = 30  # characters; longer cells may wrap


def styled(frame: pd.DataFrame, *, percent: Sequence[str] = (), formats: Mapping[str, str] | None = None) -> Styler:
    """A table as a page shows it, texts as they are and never as HTML; a wide one scrolls.

    Args:
        frame: one column a column; its index is not shown.
        percent: columns of fractions to show as percentages.
        formats: column → format string, such as "{:.2f}".

    Example:
        >>> "25.6%" in styled(pd.DataFrame({"share": [0.256]}), percent=["share"]).to_html()
        True
    """
    forms = {**dict.fromkeys(percent, "{:.1%}"), **(formats or {})}
    cells = {column: partial(_cell, form=forms.get(column)) for column in frame.columns}
    short = [
        number
        for number, column in enumerate(frame.columns)
        if max((len(str(cells[column](value))) for value in frame[column]), default=0) <= LONGEST_UNBROKEN
    ]
    look = [
        {"selector": "", "props": "font-size: 0.92em; display: block; overflow-x: auto"},
        {"selector": "th, td", "props": "padding: 0.25em 0.7em; text-align: left; vertical-align: baseline"},
        {"selector": "td", "props": "font-variant-numeric: tabular-nums"},
        *({"selector": f"td.col{number}", "props": "white-space: nowrap"} for number in short),
    ]
    forms = {column: lambda value, told=told: safe(told(value)) for column, told in cells.items()}
    heads = frame.style.format(forms, na_rep="–").format_index(lambda head: safe(str(head)), axis=1)
    return heads.set_table_styles(look).hide()


def gains(frame: pd.DataFrame) -> Styler:
    """Differences with intervals, a row a comparison and a column a metric.

    A cell is value ± half width [95 % interval] in points, and in how many seeds the system is ahead.

    frame: as `Scores.gains` returns it: columns metric, value, low, high (fractions), and, where it has them, system,
    baseline, half width, wins, seeds and clips.

    Example:
        >>> row = {"system": "kcl", "metric": "R@1", "value": 0.012, "low": 0.004, "high": 0.02}
        >>> gains(pd.DataFrame([row])).data["R@1"].tolist()
        ['1.2 [0.4, 2.0]']
    """
    keys = [column for column in ("system", "baseline") if column in frame]
    wide = frame.assign(cell=[_gain(row) for row in frame.to_dict("records")]).pivot_table(
        index=keys, columns="metric", values="cell", aggfunc="first", sort=False
    )
    order = list(dict.fromkeys(frame["metric"]))
    wide = wide[order].rename_axis(columns=None).reset_index().rename(columns={"baseline": "over"})
    if "clips" in frame:
        counts = frame.groupby(keys, sort=False)[["seeds", "clips"]].first()
        wide["seeds × clips"] = [f"{seeds} × {clips}" for seeds, clips in counts.to_numpy()]
    return styled(wide)


def _cell(value: Any, form: str | None) -> str:
    """A cell as text, with a true minus sign and no negative zero."""
    text = form.format(value) if form else str(value) if not isinstance(value, float) else f"{value:.6g}"
    text = re.sub(r"(?<![\w.])-(?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def _gain(row: Mapping[str, Any]) -> str:
    half = f" ± {100 * row['half width']:.1f}" if "half width" in row else ""
    wins = f", {row['wins']}" if "wins" in row else ""
    return f"{100 * row['value']:.1f}{half} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]{wins}"

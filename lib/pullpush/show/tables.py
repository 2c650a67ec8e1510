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


def _cell(value: Any, form: str | None) -> str:
    """A cell as text, with a true minus sign and no negative zero."""
    text = form.format(value) if form else str(value) if not isinstance(value, float) else f"{value:.6g}"
    text = re.sub(r"(?<![\w.])-(?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)

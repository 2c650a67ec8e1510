"""The papers' tables, and how many decimals a measured number deserves."""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pullpush.errors import DataNotFoundError
from pullpush.lab.root import find_root


def paper_table(paper: str, table: int, *, folder: Path | None = None) -> pd.DataFrame:
    """A paper's table as a tidy frame: system, dataset, task, language, metric, value, std, unit, note.

    Args:
        paper: `supclap`, `atri`, `language_encoder`, `glap` or `distill_cluster`.
        table: its number in the paper.
        folder: where the CSV files are; default `book/paper-tables` of this book.

    Raises:
        DataNotFoundError: no such table; the message lists those that exist.
    """
    folder = folder or find_root() / "book" / "paper-tables"
    path = folder / f"{paper}_table{table}.csv"
    if not path.exists():
        tables = ", ".join(sorted(p.stem for p in folder.glob("*.csv"))) or "none"
        raise DataNotFoundError(f"no table {paper}_table{table} in {folder}: known: {tables}")
    return pd.read_csv(path)


def printed(paper: str, table: int, wanted: Mapping[str, Any]) -> tuple[float, float]:
    """What a paper prints where its columns have these values, and its standard deviation; NaN where there is none.

    Several cells, such as those of both directions, are averaged.

    >>> printed("glap", 7, {"system": "GLAP", "dataset": "ESC-50", "language": "deu"})[0]
    64.3
    """
    rows = [row for row in paper_rows(paper, table) if wanted.items() <= row.items()]
    value, std = (np.array([row[column] for row in rows], float) for column in ("value", "std"))
    return (float(value.mean()), float(std.mean())) if rows else (math.nan, math.nan)


@lru_cache(maxsize=128)
def paper_rows(paper: str, table: int) -> list[dict[str, Any]]:
    """The rows of a paper's table, column → cell, read once."""
    return [{str(name): cell for name, cell in row.items()} for row in paper_table(paper, table).to_dict("records")]


def decimals(low: float, high: float) -> int:
    """How many decimals an interval's half width deserves, from 1 to 4: those down to its first digit."""
    half = abs(float(high) - float(low)) / 2
    return min(max(-math.floor(math.log10(half)), 1), 4) if half > 0 and math.isfinite(half) else 3


def form(low: float, high: float) -> str:
    """How to write an estimate with this interval: as many decimals as it deserves, or powers of ten if all is tiny."""
    return ".1e" if 0 < max(abs(float(low)), abs(float(high))) < 1e-3 else f".{decimals(low, high)}f"

"""The papers' numbers, and the table that every chapter closes with: paper, ours, difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import NamedTuple

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
        known = ", ".join(sorted(p.stem for p in folder.glob("*.csv"))) or "none"
        raise DataNotFoundError(f"no table {paper}_table{table} in {folder}: known: {known}")
    return pd.read_csv(path)


class Claim(NamedTuple):
    """One row of a chapter's closing table; numbers or words."""

    claim: str
    paper: float | str
    ours: float | str
    verdict: str
    interval: tuple[float, float] | None = None


def verdict_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Claim, paper, ours, difference, verdict: the difference stands where both sides are numbers.

    Numbers with an interval have as many decimals as its width deserves, all others three digits.
    """
    rows = []
    for claim, paper, ours, verdict, interval in claims:
        shown, difference = ours, "–"
        form = ".3g" if interval is None else f".{decimals(*interval)}f"
        if isinstance(ours, Real):
            shown = f"{ours:{form}}"
            if isinstance(paper, Real):
                difference = f"{ours - paper:+{form}}"
        if interval is not None:
            shown += f" [{interval[0]:{form}}, {interval[1]:{form}}]"
        paper = f"{paper:.3g}" if isinstance(paper, Real) else paper
        rows.append({"claim": claim, "paper": paper, "ours": shown, "difference": difference, "verdict": verdict})
    return pd.DataFrame(rows)


def claim_numbers(claims: Sequence[Claim]) -> pd.DataFrame:
    """Claims with an interval, as numbers for `plots.claim_intervals`: claim, paper (or NaN), value, low, high.

    A range in words, such as "0.7 to 3.2", is no number.
    """
    rows = [
        (one.claim, one.paper if isinstance(one.paper, Real) else math.nan, one.ours, *one.interval)
        for one in claims
        if one.interval is not None and isinstance(one.ours, Real)
    ]
    table = pd.DataFrame(rows, columns=["claim", "paper", "value", "low", "high"])
    return table.astype(dict.fromkeys(["paper", "value", "low", "high"], float))


def decimals(low: float, high: float) -> int:
    """How many decimals an interval's half width deserves, from 1 to 4: those down to its first digit."""
    half = abs(float(high) - float(low)) / 2
    return min(max(-math.floor(math.log10(half)), 1), 4) if half > 0 and math.isfinite(half) else 3


def form(low: float, high: float) -> str:
    """How to write an estimate with this interval: as many decimals as it deserves, or powers of ten if all is tiny."""
    return ".1e" if 0 < max(abs(float(low)), abs(float(high))) < 1e-3 else f".{decimals(low, high)}f"

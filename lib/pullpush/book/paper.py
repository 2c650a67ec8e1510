"""The papers' numbers, and the table that every chapter closes with: paper, ours, difference."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pullpush.book.root import find_root
from pullpush.errors import DataNotFoundError


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
    """Claim, paper, ours, difference, verdict: the difference stands where both sides are numbers."""
    rows = []
    for claim, paper, ours, verdict, interval in claims:
        numbers = isinstance(paper, Real) and isinstance(ours, Real)
        shown = f"{ours:.3g}" if isinstance(ours, Real) else ours
        if interval is not None:
            shown += f" [{interval[0]:.3g}, {interval[1]:.3g}]"
        rows.append(
            {
                "claim": claim,
                "paper": f"{paper:.3g}" if isinstance(paper, Real) else paper,
                "ours": shown,
                "difference": f"{ours - paper:+.3g}" if numbers else "–",
                "verdict": verdict,
            }
        )
    return pd.DataFrame(rows)

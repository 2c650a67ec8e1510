"""Where tables of two executions differ, and which claims that moves.

Numbers agree within a relative 1e-5, which is more than rounding to six digits; texts, rows and columns must be the
same. A table with a column `time` holds seconds of the machine that made it: it is named, and not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

RELATIVE, ABSOLUTE = 1e-5, 1e-8
TIMED = "time"
CLAIMS = "claims"


class Moved(NamedTuple):
    """What differs, a table or a claim, and how."""

    name: str
    how: str


def tables(fresh: Path, published: Path, pages: Sequence[str]) -> list[Moved]:
    """The tables of some pages that differ between two folders of executions, also those that only one has."""
    found = []
    for name in sorted({path.name for folder in (fresh, published) for path in _tables(folder, pages)}):
        ours, theirs = fresh / name, published / name
        if not theirs.is_file():
            found.append(Moved(name, "is new"))
        elif not ours.is_file():
            found.append(Moved(name, "is gone"))
        elif how := difference(ours, theirs):
            found.append(Moved(name, how))
    return found


def timed(folder: Path, pages: Sequence[str]) -> list[str]:
    """The tables of some pages that hold seconds of the machine."""
    return sorted(path.name for path in _tables(folder, pages) if TIMED in _columns(path))


def claims(fresh: Path, published: Path, page: str) -> list[Moved]:
    """The claims of a page whose verdict or number is another than before, and those that are new or gone."""
    ours, theirs = (_judged(folder / f"{page}.{CLAIMS}.csv") for folder in (fresh, published))
    found = []
    for id in dict.fromkeys([*theirs.index, *ours.index]):
        before, now = ([None] if id not in side.index else side.loc[[id]].to_dict("records") for side in (theirs, ours))
        if before[0] is None or now[0] is None:
            found.append(Moved(str(id), "is new" if before[0] is None else "is gone"))
            continue
        old, new = before[0], now[0]
        if old["verdict"] != new["verdict"]:
            found.append(Moved(str(id), f"{old['verdict']} → {new['verdict']}"))
        elif not _near(np.array([new["value"]], float), np.array([old["value"]], float)).all():
            found.append(Moved(str(id), f"{new['verdict']} as before, {old['value']:.4g} → {new['value']:.4g}"))
    return found


def difference(ours: Path, theirs: Path) -> str:
    """How a table differs from the published one; empty if it does not, or holds seconds of the machine."""
    new, old = pd.read_csv(ours), pd.read_csv(theirs)
    if list(new.columns) != list(old.columns):
        return f"has the columns {', '.join(new.columns)} in place of {', '.join(old.columns)}"
    if TIMED in new.columns:
        return ""
    if len(new) != len(old):
        return f"has {len(new)} rows in place of {len(old)}"
    wrong = np.column_stack([~_same(new[name], old[name]) for name in new.columns]) if len(new) else np.zeros((0, 0))
    if not wrong.any():
        return ""
    row, column = np.argwhere(wrong)[0]
    name = new.columns[column]
    first = f"row {row + 1}, {name}: {_shown(old[name][row])} → {_shown(new[name][row])}"
    return f"{int(wrong.sum())} of {wrong.size} cells moved, first in {first}"


def _same(ours: pd.Series, theirs: pd.Series) -> np.ndarray:
    if all(pd.api.types.is_numeric_dtype(side) for side in (ours, theirs)):
        return _near(ours.to_numpy(float), theirs.to_numpy(float))
    both_missing = ours.isna() & theirs.isna()
    return (both_missing | (ours.astype(str) == theirs.astype(str))).to_numpy(bool)


def _near(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return np.isclose(ours, theirs, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _judged(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame({"id": [], "verdict": [], "value": []})
    return table.set_index("id")


def _tables(folder: Path, pages: Sequence[str]) -> list[Path]:
    return [path for page in pages for path in folder.glob(f"{page}.*.csv")]


def _columns(path: Path) -> list[str]:
    return list(pd.read_csv(path, nrows=0).columns)

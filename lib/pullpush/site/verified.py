"""What verifications found: `verified.csv` beside the published executions, and what *Every claim* says of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from pullpush.cache import atomic_path
from pullpush.lab import profiles
from pullpush.lab.evidence import cells, html_table
from pullpush.site import executions

FILE = "verified.csv"
MARK = "<!-- trained again -->"  # where the page says it
RUN = ("chapter", "experiment", "system", "point", "seed")
COLUMNS = ("date", "processor", *RUN, "metric", "kept", "here", "difference", "band", "within", "minutes")
HEAD = ("trained again", "numbers", "inside", "nearest to the edge of its band")


def place(root: Path) -> Path:
    """The file of a book's verifications."""
    return executions.place(root, profiles.DEFAULT, published=True) / FILE


def save(rows: Sequence[Mapping[str, Any]], path: Path, *, processor: str) -> None:
    """Write rows of a processor in place of its earlier ones; those of other processors stay.

    Raises:
        CacheError: the folder cannot be written.
    """
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    before = read(path)
    others = before[before["processor"] != processor]
    whole = pd.concat([others, table], ignore_index=True) if len(others) else table
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        whole.to_csv(partial, index=False, float_format="%.6g", lineterminator="\n")


def read(path: Path) -> pd.DataFrame:
    """The table, COLUMNS; empty where there is none, or none that is whole: the next verification writes it anew."""
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values={"kept": "", "here": "", "difference": ""})
    except (OSError, ValueError):
        return pd.DataFrame(columns=list(COLUMNS))
    return table if list(table.columns) == list(COLUMNS) else pd.DataFrame(columns=list(COLUMNS))


def complete(page: Path, path: Path) -> None:
    """Say on a copy of the page, where MARK stands, which runs were trained again, on what, and how they ended."""
    table = read(path)
    said = "No kept run has been trained again yet: `pullpush verify` does it."
    if len(table):
        shutil.copyfile(path, page.with_name(FILE))
        parts = [_of_processor(str(name), rows) for name, rows in table.groupby("processor", sort=False)]
        said = "\n\n".join([*parts, f"{{download}}`{FILE}`"])
    page.write_text(page.read_text(encoding="utf-8").replace(MARK, said), encoding="utf-8")


def _of_processor(name: str, table: pd.DataFrame) -> str:
    runs = list(table.groupby(list(RUN), sort=False))
    inside = int(table["within"].sum())
    dates = sorted(set(table["date"]))
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    said = f"Trained again on {name}, {when}: {len(runs)} runs, {inside} of {len(table)} numbers within their band."
    is_open = "" if inside == len(table) else " open"
    body = html_table(HEAD, (_line(key, rows) for key, rows in runs))
    return f"```{{raw}} html\n<details{is_open}><summary>{escape(said)}</summary>\n{body}</details>\n```"


def _line(key: Sequence[Any], rows: pd.DataFrame) -> str:
    chapter, experiment, system, point, seed = (str(part) for part in key)
    told = ", ".join(part for part in (f"{chapter}/{experiment}", system, point, f"seed {seed}") if part)
    edge = rows.loc[(rows["difference"].abs() / rows["band"]).idxmax()]
    nearest = f"{edge['metric']}: {edge['kept']:.4g} → {edge['here']:.4g}, band ± {edge['band']:.2g}".replace("-", "−")
    texts = (told, str(len(rows)), str(int(rows["within"].sum())), nearest)
    return f"<tr>{cells(map(escape, texts))}</tr>"

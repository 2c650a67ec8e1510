"""Tables of captions: a CSV in the layout of Clotho or AudioCaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pullpush.data.own_table import check_fields
from pullpush.errors import DataNotFoundError, PullPushError, unknown


def read_captions(path: str | Path, *, split: str | None = None) -> dict[str, list[str]]:
    """Captions of each recording: file name → captions, in the order of the file.

    The CSV has a column `file_name` and either `caption` (one row per caption; rows of one file are gathered) or
    `caption_1`, `caption_2`, …; empty cells are left out. Where it has a column `split`, `split` selects rows.

    Raises:
        DataNotFoundError: there is no such file.
        PullPushError: it is not such a table, or a recording has no caption.
        UnknownNameError: no row has this `split`.
    """
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"no caption table at {path}")
    check_fields(path)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise PullPushError(f"{path} is not a CSV table in UTF-8: {error}") from error
    columns = [name for name in table.columns if name == "caption" or name.startswith("caption_")]
    if "file_name" not in table.columns or not columns:
        raise PullPushError(
            f"{path} needs the columns file_name and caption (or caption_1, caption_2, …), got {list(table.columns)}"
        )
    if split is not None:
        known = set(table["split"]) if "split" in table.columns else set()
        if split not in known:
            raise unknown(f"split in {path.name}", split, known)
        table = table[table["split"] == split]
    return _gather(table, columns, path)


def _gather(table: pd.DataFrame, columns: Sequence[str], path: Path) -> dict[str, list[str]]:
    """File name → captions, from rows with one or several captions."""
    captions: dict[str, list[str]] = {}
    for name, *texts in table[["file_name", *columns]].itertuples(index=False):
        captions.setdefault(name, []).extend(text.strip() for text in texts if text.strip())
    empty = [name for name, texts in captions.items() if not texts]
    if empty:
        raise PullPushError(f"{path} has no caption for {', '.join(empty[:5])} ({len(empty)} in all)")
    return captions

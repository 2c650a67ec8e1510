"""Recordings of your own with a table of captions, `folder:/path`; what is wrong in the table is named by line.

The table is a CSV in the layout of Clotho or AudioCaps, see `read_captions`.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

import pandas as pd

from pullpush.data.recordings.registry import NAMED, DatasetCard, Listing, require_all
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError, unknown

SPLITS = ("train", "valid", "val", "test")
MARKS = (";", "\t", "|")


def read(place: Path, split: str) -> Listing:
    """Recordings of your own: `captions.csv` with the columns split (train, valid or val, test), file_name and caption,
    or caption_1, caption_2, …; recordings beside it or in `audio`."""
    table = place / "captions.csv"
    if table.is_file():
        check_fields(table)
        check_split(table, split)
        check_rows(place, table)
    names = {"valid": ("valid", "val")}.get(split, (split,))
    captions: dict[str, list[str]] = {}
    for name in names:  # rows of both words are one split
        with suppress(UnknownNameError):
            captions |= read_captions(table, split=name)
    recordings = place / "audio" if (place / "audio").is_dir() else place
    paths = [recordings / name for name in captions]
    require_all(place.name, paths, table)
    return Listing(paths, list(captions.values()))


def located(card: DatasetCard, path: str) -> DatasetCard:
    """The card of one folder."""
    return replace(card, title=Path(path).name, folder=str(Path(path).expanduser().absolute()))


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


class Row(NamedTuple):
    """A row of the table: its line in the file, its split, the recording's name, what is said of it."""

    line: int
    split: str
    name: str
    captions: tuple[str, ...]


def check_fields(path: Path) -> None:
    """Refuse a table that is not in UTF-8 or parts its fields otherwise than by commas, as spreadsheets save it, and
    one with a row of more or fewer fields than its header, as an unquoted comma in a caption makes.

    Raises:
        PullPushError: how to save it is told, or the line is named.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""))
        header = next(reader, [])
        if len(header) == 1 and (mark := next((each for each in MARKS if each in header[0]), "")):
            raise PullPushError(f"{path} parts its fields by {mark!r}: save it with commas")
        for fields in reader:
            if fields and len(fields) != len(header):
                break
        else:
            return
    except UnicodeDecodeError as error:
        raise PullPushError(
            f"{path} is not in UTF-8 ({error.reason}, byte {error.start + 1}): save it as CSV in UTF-8"
        ) from error
    except (OSError, csv.Error):
        return  # whoever reads the table says so
    raise PullPushError(
        f"{path}, line {reader.line_num}: {len(fields)} fields in place of {len(header)} ({', '.join(header)}); put "
        'a text that holds a comma into quotes: "a dog, then a cat"'
    )


def check_rows(folder: Path, table: Path) -> None:
    """Refuse rows that name files elsewhere, files that are called alike, or one file in two splits; warn of rows that
    are there twice, and of translations of recordings that nobody has.

    Raises:
        PullPushError: the lines are named.
    """
    rows = list(_rows(table))
    first: dict[str, Row] = {}
    said: dict[tuple[str, ...], Row] = {}
    twice = []
    for row in rows:
        path = PurePath(row.name)
        if path.is_absolute() or ".." in path.parts:
            raise PullPushError(
                f"{table}, line {row.line}: {row.name} leads out of the folder; put the recording into it, and give "
                "its name there"
            )
        before = first.setdefault(path.name, row)
        if before.name != row.name:
            raise PullPushError(
                f"{table}: {before.name} (line {before.line}) and {row.name} (line {row.line}) are called alike; give "
                "one of them another name, for results and translations find a recording by its name alone"
            )
        if _same(before.split) != _same(row.split):
            raise PullPushError(
                f"{table}: {row.name} is in {before.split} (line {before.line}) and in {row.split} (line {row.line}): "
                "a score on what was heard in training says nothing; keep one of the two"
            )
        if (earlier := said.setdefault((row.name, *row.captions), row)) is not row:
            twice.append(f"line {row.line} is line {earlier.line}")
    if twice:
        warnings.warn(f"{table}: {len(twice)} rows are there twice, and count so: {_some(twice)}", stacklevel=5)
    for further in sorted(folder.glob("captions.*.csv")):
        lost = [f"{row.name} (line {row.line})" for row in _rows(further) if row.name not in first]
        if lost:
            warnings.warn(
                f"{further}: {len(lost)} rows name no recording of {table.name}, whose names stand without folders: "
                f"{_some(lost)}",
                stacklevel=5,
            )


def check_split(table: Path, split: str) -> None:
    """Refuse a table that has no column `split`, another word in it, or no row for a split.

    Raises:
        PullPushError: what is there is told.
    """
    rows = list(_rows(table))
    if wrong := next((row for row in rows if row.split not in SPLITS), None):
        what = f"line {wrong.line} has the split {wrong.split!r}" if wrong.split else "there is no split"
        raise PullPushError(f"{table}: {what}; a column `split` says train, valid or test for each row")
    if not any(_same(row.split) == split for row in rows):
        known = ", ".join(sorted({row.split for row in rows})) or "none"
        raise PullPushError(f"{table} has no row for the split {split!r}, only {known}: give it a tenth of the clips")


def _rows(table: Path) -> Iterator[Row]:
    """The rows of a table, as far as it can be read; whoever reads it after this says what cannot."""
    try:
        with open(table, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            for told in reader:
                captions = [(told[name] or "").strip() for name in told if name and name.startswith("caption")]
                name = told.get("file_name")
                if name:
                    yield Row(reader.line_num, told.get("split") or "", name, tuple(filter(None, captions)))
    except (OSError, UnicodeDecodeError, csv.Error):
        return


def _same(split: str) -> str:
    return "valid" if split == "val" else split


def _some(found: list[str]) -> str:
    return f"{'; '.join(found[:NAMED])}{' …' if found[NAMED:] else ''}"


CARD = DatasetCard(
    name="folder",
    make=read,
    title="A folder",
    about="Recordings of your own with captions.csv: folder:/path names their folder.",
    source="the reader",
    folder="folder",
    of=located,
    how="write folder:/path, where /path holds captions.csv and its recordings",
)

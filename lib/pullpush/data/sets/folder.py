"""Recordings of your own with a table of captions, `folder:/path`; what is wrong in the table is named by line.

The table is a CSV in the layout of Clotho or AudioCaps, see `read_captions`.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

from pullpush.data.recordings.registry import DatasetCard, Listing, require_all
from pullpush.errors import DataNotFoundError, PullPushError, few

SPLITS = {"train": "train", "valid": "valid", "val": "valid", "test": "test"}
MARKS = (";", "\t", "|")
CAPTION = re.compile(r"caption(_\d+)?")  # columns of the table; others, such as caption_id, are nobody's words


class Row(NamedTuple):
    """A row of the table: its line in the file, its split, the recording's name, what is said of it."""

    line: int
    split: str
    name: str
    captions: tuple[str, ...]


def read(place: Path, split: str) -> Listing:
    """Recordings of your own: `captions.csv` with the columns split (train, valid or val, test), file_name and caption,
    or caption_1, caption_2, …; recordings beside it or in `audio`."""
    table = place / "captions.csv"
    rows = rows_of(table)
    if wrong := next((row for row in rows if row.split not in SPLITS), None):
        has = f"the split {wrong.split!r}" if wrong.split else "no split"
        what = f"line {wrong.line} has {has}" if any(row.split for row in rows) else "there is no split"
        raise PullPushError(f"{table}: {what}; a column `split` says train, valid or test for each row")
    chosen = [row for row in rows if SPLITS[row.split] == split]
    if not chosen:
        known = ", ".join(sorted({row.split for row in rows})) or "none"
        raise PullPushError(f"{table} has no row for the split {split!r}, only {known}: give it some clips")
    check_rows(table, rows)
    captions = gathered(table, chosen)
    recordings = place / "audio" if (place / "audio").is_dir() else place
    paths = [recordings / name for name in captions]
    require_all(place.name, paths, table)
    return Listing(paths, list(captions.values()))


def located(card: DatasetCard, path: str) -> DatasetCard:
    """The card of one folder."""
    return replace(card, title=Path(path).name, folder=str(Path(path).expanduser().absolute()))


def read_captions(path: str | Path, *, whole: bool = True) -> dict[str, list[str]]:
    """Captions of each recording: file name → captions, in the order of the file. whole: each recording has one, else
    `PullPushError`; a table in a further language may be unfinished.

    The CSV has a column `file_name` and either `caption` (one row per caption; rows of one file are gathered) or
    `caption_1`, `caption_2`, …; empty cells are left out.
    """
    rows = rows_of(Path(path))
    return gathered(Path(path), rows if whole else (row for row in rows if row.captions))


def gathered(path: Path, rows: Iterable[Row]) -> dict[str, list[str]]:
    """File name → captions, from rows with one or several captions; `PullPushError` where a recording has none."""
    captions: dict[str, list[str]] = {}
    for row in rows:
        captions.setdefault(row.name, []).extend(row.captions)
    if empty := [name for name, texts in captions.items() if not texts]:
        raise PullPushError(f"{path} has no caption for {', '.join(empty[:5])} ({len(empty)} in all)")
    return captions


def rows_of(path: Path) -> list[Row]:
    """The rows of a table."""
    if not path.is_file():
        raise DataNotFoundError(f"no caption table at {path}")
    try:
        reader = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), strict=True)
        header, *rows = [(reader.line_num, fields) for fields in reader if fields] or [(0, [])]
    except UnicodeDecodeError as error:
        raise PullPushError(
            f"{path} is not in UTF-8 ({error.reason}, byte {error.start + 1}): save it as CSV in UTF-8"
        ) from error
    except csv.Error as error:
        raise PullPushError(f"{path}, line {reader.line_num}: {error}; are its quotes closed?") from error
    names = header[1]
    if len(names) == 1 and (mark := next((each for each in MARKS if each in names[0]), "")):
        raise PullPushError(f"{path} parts its fields by {mark!r}: save it with commas")
    captions = [place for place, name in enumerate(names) if CAPTION.fullmatch(name)]
    if "file_name" not in names or not captions:
        raise PullPushError(f"{path} needs the columns file_name and caption (or caption_1, caption_2, …), got {names}")
    for line, fields in rows:
        if len(fields) != len(names):
            raise PullPushError(
                f"{path}, line {line}: {len(fields)} fields in place of {len(names)} ({', '.join(names)}); put a text "
                'that holds a comma into quotes: "a dog, then a cat"'
            )
    of_file, of_split = names.index("file_name"), names.index("split") if "split" in names else None
    return [
        Row(
            line,
            "" if of_split is None else fields[of_split],
            fields[of_file],
            tuple(text for place in captions if (text := fields[place].strip())),
        )
        for line, fields in rows
    ]


def check_rows(table: Path, rows: Iterable[Row]) -> None:
    """Refuse rows that name files elsewhere, files that are called alike, or one file in two splits; warn of rows that
    are there twice, and of translations of recordings that nobody has. Lines are named.
    """
    first: dict[str, Row] = {}
    known: dict[tuple[str, ...], Row] = {}
    twice = []
    for row in rows:
        path = PurePath(row.name)
        if not path.name:
            raise PullPushError(f"{table}, line {row.line} has no file_name: name the recording, or take the row out")
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
        if SPLITS[before.split] != SPLITS[row.split]:
            raise PullPushError(
                f"{table}: {row.name} is in {before.split} (line {before.line}) and in {row.split} (line {row.line}): "
                "a score on what was heard in training says nothing; keep one of the two"
            )
        if (earlier := known.setdefault((row.name, *row.captions), row)) is not row:
            twice.append(f"line {row.line} is line {earlier.line}")
    if twice:
        text = few(twice, "; ")
        warnings.warn(f"{table}: {len(twice)} rows are there twice, and count so: {text}", stacklevel=4)
    for further in sorted(table.parent.glob("captions.*.csv")):
        if lost := [f"{row.name} (line {row.line})" for row in rows_of(further) if row.name not in first]:
            warnings.warn(
                f"{further}: {len(lost)} rows name no recording of {table.name}, whose names stand without folders: "
                f"{few(lost, '; ')}",
                stacklevel=4,
            )


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

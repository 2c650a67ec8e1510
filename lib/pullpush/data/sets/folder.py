"""Recordings of your own with a table of captions: `folder:/path`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, require_all
from pullpush.data.own_table import check_fields, check_rows, check_split
from pullpush.data.tables import read_captions
from pullpush.errors import UnknownNameError


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

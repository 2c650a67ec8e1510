"""Recordings of your own with a table of captions: `folder:/path`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, require_all
from pullpush.data.tables import read_captions


def read(place: Path, split: str) -> Listing:
    """Recordings of your own: `captions.csv` with the columns split (train, valid or val, test), file_name and caption,
    or caption_1, caption_2, …; recordings beside it or in `audio`."""
    table = place / "captions.csv"
    names = {"valid": ("valid", "val")}.get(split, (split,))
    try:
        captions = read_captions(table, split=names[0])
    except ValueError:
        if len(names) == 1:
            raise
        captions = read_captions(table, split=names[1])
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

"""Conceptual Captions: pictures of the web whose alternative texts became captions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from pullpush.data.image_archives import in_archives
from pullpush.data.image_files import ENDINGS, Files
from pullpush.data.image_listing import ImageCard, PictureListing, warn_of_lost
from pullpush.errors import DataNotFoundError

TITLE = "Conceptual Captions"
TABLES = {"train": "Train_GCC-training.tsv", "valid": "Validation_GCC-1.1.0-Validation.tsv"}


def read(place: Path, split: str) -> PictureListing:
    """CC3M: Train_GCC-training.tsv and Validation_GCC-1.1.0-Validation.tsv (caption, tab, address), and in the folders
    `train` and `valid` either tar archives as img2dataset writes them (00000.tar holds 000000000.jpg and .txt), or
    pictures called by their row's number, from 0, in folders as may be (00000/000000123.jpg).

    Pictures whose addresses have died are left out; a warning says how many. Archives need no table.
    """
    table, folder = place / TABLES[split], place / split
    archives = sorted(folder.glob("*.tar"))
    if archives:
        pictures, names, captions = in_archives(archives)
        count = sum(_asked_for(archive) for archive in archives) or (_length(table) if table.is_file() else len(names))
        warn_of_lost(TITLE, split, count - len(names), count)
        return PictureListing(pictures, names, [[caption] for caption in captions])
    if not table.is_file():
        raise DataNotFoundError(f"{TITLE} has neither {table} nor archives such as {folder / '00000.tar'}")
    numbered = sorted(_numbered(folder)) if folder.is_dir() else []
    wanted = dict(numbered)
    captions = {row: text for row, text in enumerate(_captions(table)) if row in wanted and text}
    if not captions:
        raise DataNotFoundError(
            f"{TITLE} has no pictures in {folder}: expected {folder / '00000.tar'} or such as 0.jpg"
        )
    names = [wanted[row] for row in captions]
    count = _length(table)
    warn_of_lost(TITLE, split, count - len(names), count)
    return PictureListing(Files(folder, names), names, [[text] for text in captions.values()])


def _captions(table: Path) -> Iterator[str]:
    """The captions of a table, whether or not it was given a head for img2dataset."""
    with open(table, encoding="utf-8") as file:
        for number, line in enumerate(file):
            caption = line.partition("\t")[0].strip()
            if number or caption != "caption":
                yield caption


def _length(table: Path) -> int:
    return sum(1 for _ in _captions(table))


def _numbered(folder: Path) -> Iterator[tuple[int, str]]:
    """Row and path of each picture that is called by a number."""
    for at, _, files in os.walk(folder):
        for name in files:
            stem, ending = os.path.splitext(name)
            if stem.isdecimal() and ending.lower() in ENDINGS:
                yield int(stem), os.path.relpath(os.path.join(at, name), folder)


def _asked_for(archive: Path) -> int:
    """How many pictures img2dataset tried to fetch for an archive: 00000_stats.json beside it; 0 without it."""
    stats = archive.with_name(f"{archive.stem}_stats.json")
    return int(json.loads(stats.read_text(encoding="utf-8")).get("count", 0)) if stats.is_file() else 0


CARD = ImageCard(
    name="cc3m",
    make=read,
    title=TITLE,
    about="Pictures of the web, 3,318,333 addresses to learn from and 15,840 to validate, with one caption each.",
    source="Sharma et al. 2018, Conceptual Captions: a cleaned, hypernymed, image alt-text dataset",
    authors="Sharma, Ding, Goodman and Soricut, Google; the pictures' owners",
    licence="captions may be used freely, Google to be named; the pictures are their owners'",
    folder="cc3m",
    how="take both tables from ai.google.com/research/ConceptualCaptions and fetch their pictures with img2dataset, as "
    "archives or files, to `train` and `valid`",
    splits=("train", "valid"),
)

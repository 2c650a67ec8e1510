"""UrbanSound8K: sounds of the city in ten classes."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, labelled, official_table
from pullpush.data.registry import unpack


def read(place: Path, split: str) -> Listing:
    """UrbanSound8K: metadata/UrbanSound8K.csv with slice_file_name, fold and class, audio/fold1/*.wav …; all folds."""
    table = official_table(place / "metadata" / "UrbanSound8K.csv", ["slice_file_name", "fold", "class"])
    files = zip(table["fold"], table["slice_file_name"], strict=True)
    return labelled("UrbanSound8K", [place / "audio" / f"fold{fold}" / name for fold, name in files], table["class"])


def fetch(root: Path) -> None:
    """Download it from Zenodo, against its checksum."""
    url = "https://zenodo.org/records/1203745/files/UrbanSound8K.tar.gz"
    unpack(root, url, "md5:9aa69802bbf37fb986f71ec1483a196e")


CARD = DatasetCard(
    name="urbansound8k",
    make=read,
    title="US8K",
    about="8,732 clips of at most four seconds in ten classes, in ten folds.",
    source="Salamon, Jacoby and Bello 2014, A dataset and taxonomy for urban sound research",
    authors="Salamon, Jacoby and Bello; the people of Freesound",
    licence="CC BY-NC 3.0",
    folder="UrbanSound8K",
    labelled=True,
    fetch=fetch,
)

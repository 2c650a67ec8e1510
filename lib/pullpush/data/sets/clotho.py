"""Clotho: recordings of Freesound with five captions each."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.aac import module_of, read_columns
from pullpush.data.listing import DatasetCard, Listing, require_all
from pullpush.data.tables import read_captions

SUBSETS = {"train": ("dev", "development"), "valid": ("val", "validation"), "test": ("eval", "evaluation")}


def read(place: Path, split: str) -> Listing:
    """Clotho 2.1: clotho_csv_files/clotho_captions_development.csv, clotho_audio_files/development/*.wav and so on."""
    subset, folder = SUBSETS[split]
    table = place / "clotho_csv_files" / f"clotho_captions_{folder}.csv"
    recordings = place / "clotho_audio_files" / folder
    if table.is_file() and recordings.is_dir():
        require_all("Clotho", [recordings / name for name in read_captions(table)], table)
    expected = (
        f"clotho_csv_files/clotho_captions_{folder}.csv, clotho_csv_files/clotho_metadata_{folder}.csv and one file in "
        f"clotho_audio_files/{folder} for each of their rows"
    )
    columns = read_columns("clotho", place, subset, expected)
    return Listing([recordings / name for name in columns["fname"]], columns["captions"])


def fetch(root: Path) -> None:
    """Download it from Zenodo."""
    module_of("clotho").download_clotho_datasets(root, tuple(subset for subset, _ in SUBSETS.values()), verbose=1)


CARD = DatasetCard(
    name="clotho",
    make=read,
    title="Clotho",
    about="About 6,000 recordings of 15 to 30 seconds from Freesound, with five captions each.",
    source="Drossos et al. 2020, Clotho: an audio captioning dataset",
    authors="Drossos, Lipping and Virtanen; the people of Freesound",
    licence="captions: Tampere University's, not for commercial use; each sound its own Creative Commons licence",
    version="2.1",
    citation="clotho",
    folder="CLOTHO_v2.1",
    fetch=fetch,
    seconds=30.0,
)

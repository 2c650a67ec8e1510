"""MACS: city scenes with several captions each."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.aac import module_of, read_columns
from pullpush.data.listing import DatasetCard, Listing, every_tenth


def read(place: Path, split: str) -> Listing:
    """MACS: MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and audio/*.wav of TAU Urban Acoustic Scenes 2019.

    It has no splits: every tenth file by name is for validation and every tenth for the test.
    """
    expected = "MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and its files in audio"
    columns = read_columns("macs", place, "full", expected)
    return every_tenth([place / "audio" / name for name in columns["fname"]], columns["captions"], split)


def fetch(root: Path) -> None:
    """Download it from Zenodo."""
    module_of("macs").download_macs_dataset(root, verbose=1)


CARD = DatasetCard(
    name="macs",
    make=read,
    title="MACS",
    about="About 3,900 recordings of airports, public squares and parks, with two to five captions each.",
    source="Martín-Morató and Mesaros 2021, MACS: multi-annotator captioned soundscapes",
    authors="Martín-Morató and Mesaros, Tampere University",
    licence="captions and sounds: Tampere University's, not for commercial use",
    folder="MACS",
    fetch=fetch,
)

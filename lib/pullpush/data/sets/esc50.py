"""ESC-50: environmental sounds in fifty classes.

Read by its official CSV: `soundata` would fetch an index of its own for what is on disk already.
"""

from __future__ import annotations

from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, labelled, official_table
from pullpush.data.registry import unpack

URL = "https://github.com/karolpiczak/ESC-50/archive/master.zip"


def read(place: Path, split: str) -> Listing:
    """ESC-50: meta/esc50.csv with filename and category, audio/*.wav; all five folds."""
    table = official_table(place / "meta" / "esc50.csv", ["filename", "target", "category"])
    return labelled("ESC-50", [place / "audio" / name for name in table["filename"]], table["category"])


def fetch(root: Path) -> None:
    """Download it from its author's repository, whose host packs it anew: there is no checksum."""
    unpack(root, URL, None)


CARD = DatasetCard(
    name="esc50",
    make=read,
    title="ESC-50",
    about="2,000 clips of five seconds, 40 of each of 50 classes.",
    source="Piczak 2015, ESC: dataset for environmental sound classification",
    authors="Karol J. Piczak; the people of Freesound",
    licence="CC BY-NC 3.0",
    folder="ESC-50-master",
    labelled=True,
    fetch=fetch,
)

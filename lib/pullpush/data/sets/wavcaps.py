"""WavCaps: recordings of four sources with captions that a language model wrote."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.aac import module_of, read_columns
from pullpush.data.listing import DatasetCard, Listing, every_tenth, require_all
from pullpush.errors import DataNotFoundError

SOURCES = {
    "AudioSet_SL": "audioset_no_audiocaps_v1",
    "BBC_Sound_Effects": "bbc",
    "FreeSound": "freesound_no_clotho_v2",
    "SoundBible": "soundbible",
}


def read(place: Path, split: str) -> Listing:
    """WavCaps: json_files/SoundBible/sb_final.json, Audio/SoundBible/*.flac and so on, of the sources that are there.

    What AudioCaps or Clotho hold, too, is left out by the lists of `aac-datasets`. It has no splits: see `macs`.
    """
    paths, captions = [], []
    for source, subset in SOURCES.items():
        if (place / "Audio" / source).is_dir():
            expected = f"json_files/{source}/*.json and all of Audio/{source}"
            columns = read_columns("wavcaps", place, subset, expected)
            paths += [place / "Audio" / source / name for name in columns["fname"]]
            captions += columns["captions"]
    if not paths:
        raise DataNotFoundError(f"WavCaps has none of {', '.join(SOURCES)} in {place / 'Audio'}")
    require_all("WavCaps", paths, "its JSON files")
    return every_tenth(paths, captions, split)


def fetch(root: Path) -> None:
    """Download it from where its authors put it."""
    module_of("wavcaps").download_wavcaps_datasets(root, tuple(SOURCES.values()), verbose=1)


CARD = DatasetCard(
    name="wavcaps",
    make=read,
    title="WavCaps",
    about="About 400,000 recordings of AudioSet, the BBC, Freesound and SoundBible, with one caption each.",
    source="Mei et al. 2023, WavCaps: a ChatGPT-assisted weakly-labelled audio captioning dataset",
    authors="Mei et al.; Freesound, BBC Sound Effects, SoundBible, AudioSet",
    licence="captions CC BY 4.0; for academic use only",
    folder="WavCaps",
    fetch=fetch,
)

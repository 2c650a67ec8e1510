"""VGGSound: clips of YouTube in about three hundred classes."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, official_table, warn_of_missing
from pullpush.errors import DataNotFoundError


def read(place: Path, split: str) -> Listing:
    """VGGSound: vggsound.csv without a head (youtube id, start seconds, label, split) and, in `audio`, clips called
    <youtube id>_<start, six digits>.wav, .flac or .mp3; what is gone from YouTube is left out with a warning."""
    columns = ["id", "start", "label", "split"]
    table = official_table(place / "vggsound.csv", columns, names=columns, header=None)
    classes = tuple(sorted(set(table["label"])))
    table = table[table["split"] == split]
    stems = [f"{clip}_{int(start):06d}" for clip, start in zip(table["id"], table["start"], strict=True)]
    files = {path.stem: path for path in (place / "audio").glob("*") if path.suffix in (".wav", ".flac", ".mp3")}
    present = [stem in files for stem in stems]
    warn_of_missing("VGGSound", split, present)
    if not any(present):
        raise DataNotFoundError(f"no clip of {place / 'vggsound.csv'} is in {place / 'audio'}, such as {stems[:1]}.wav")
    labels = [label for label, is_present in zip(table["label"], present, strict=True) if is_present]
    return Listing([files[stem] for stem in stems if stem in files], labels=labels, classes=classes)


CARD = DatasetCard(
    name="vggsound",
    make=read,
    title="VGGSound",
    about="About 200,000 clips of ten seconds from YouTube in 309 classes.",
    source="Chen et al. 2020, VGGSound: a large-scale audio-visual dataset",
    authors="Chen, Xie, Vedaldi and Zisserman; the videos' owners",
    licence="annotations CC BY 4.0; the sounds are the video owners'",
    folder="vggsound",
    labelled=True,
    how="its clips come from YouTube, by its authors' list vggsound.csv, to audio/<id>_<start, six digits>.wav",
)

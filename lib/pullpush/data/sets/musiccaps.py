"""MusicCaps: ten seconds of music of YouTube with a caption that a musician wrote."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from pullpush.data.listing import DatasetCard, Listing, official_table, warn_of_missing
from pullpush.errors import DataNotFoundError, unknown

TABLE = "musiccaps-public.csv"
COLUMNS = ("ytid", "start_s", "end_s", "caption", "is_audioset_eval")
ENDINGS = (".wav", ".flac", ".mp3", ".m4a", ".ogg", ".opus")
ID = 11  # characters of a YouTube id
TENTH = 10  # one in so many training clips validates
VERSIONS = ("paper",)


def read(place: Path, split: str, version: str = "") -> Listing:
    """MusicCaps: musiccaps-public.csv, and in `audio` one file a clip, whose name begins with its YouTube id, in
    brackets or not, and goes on with its start or with nothing: <id>.wav, <id>_30.wav, [<id>]-[30-40].wav.

    The clips of AudioSet's evaluation set test, 2,663 of 5,521; of the 2,858 others every tenth by id validates.
    version: "paper", all 2,858 to learn from, and the test clips to validate, as The Language Encoder has it. Clips
    that are gone from YouTube are left out; a warning says how many.
    """
    table = official_table(place / TABLE, COLUMNS)
    evaluates = table["is_audioset_eval"].str.lower() == "true"
    rows = table[evaluates if split == "test" or (version and split == "valid") else ~evaluates]
    if not version and split != "test":
        ids = sorted(rows["ytid"])
        held_out = set(ids[TENTH - 1 :: TENTH])
        rows = rows[rows["ytid"].isin(held_out) == (split == "valid")]
    files = [file for file in sorted((place / "audio").glob("*")) if file.suffix.lower() in ENDINGS]
    known = {told(file.stem): file for file in files}
    paths = [
        next((known[own] for own in ((clip, start), (clip, 1000 * start), (clip, None)) if own in known), None)
        for clip, start in zip(rows["ytid"], rows["start_s"].map(int), strict=True)
    ]
    warn_of_missing("MusicCaps", split, [path is not None for path in paths])
    found = [(path, [caption.strip()]) for path, caption in zip(paths, rows["caption"], strict=True) if path]
    if not found:
        raise DataNotFoundError(
            f"no clip of {place / TABLE} is in {place / 'audio'}, such as {rows['ytid'].iloc[0]}.wav"
        )
    return Listing([path for path, _ in found], [captions for _, captions in found])


def told(stem: str) -> tuple[str, int | None]:
    """The YouTube id and the start that a file's name tells, in seconds or milliseconds; None: none.

    >>> told("-0Gj8-vB1q4"), told("[-0Gj8-vB1q4]-[30-40]"), told("-0Gj8-vB1q4_30")
    (('-0Gj8-vB1q4', None), ('-0Gj8-vB1q4', 30), ('-0Gj8-vB1q4', 30))
    """
    plain = stem.replace("[", "").replace("]", "")
    start = re.search(r"\d+", plain[ID:])
    return plain[:ID], int(start[0]) if start else None


def versioned(card: DatasetCard, version: str) -> DatasetCard:
    """The card of "musiccaps:paper", with the paper's two splits."""
    if version not in VERSIONS:
        raise unknown("version of MusicCaps", version, VERSIONS)
    return replace(card, make=partial(read, version=version))


CARD = DatasetCard(
    name="musiccaps",
    make=read,
    title="MusicCaps",
    about="5,521 clips of ten seconds of music from YouTube, with one caption each by a musician.",
    source="Agostinelli et al. 2023, MusicLM: generating music from text",
    authors="Agostinelli et al., Google; the videos' owners",
    licence="captions CC BY-SA 4.0; the sounds are the video owners'",
    folder="MusicCaps",
    how="take musiccaps-public.csv of google/MusicCaps on the Hugging Face hub, and its clips from YouTube, to "
    "audio/<YouTube id>.wav",
    of=versioned,
)

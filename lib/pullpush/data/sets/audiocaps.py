"""AudioCaps: clips of YouTube with captions that people wrote."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pullpush.data.aac import module_of, read_columns
from pullpush.data.listing import DatasetCard, Listing, Subset, warn_of_missing
from pullpush.errors import DataNotFoundError, unknown

TITLES = {"v1": "AudioCaps", "v2": "AudioCaps 2.0"}
YTDLP = "PULLPUSH_YTDLP"
ATTEMPTS = 3  # a clip


def read(place: Path, split: str, version: str = "v1") -> Listing:
    """AudioCaps 1.0: `train.csv` (or csv_files_v1/train.csv) and `audio_32000Hz/train/<youtube id>_<start>.flac`.

    version: "v1", or "v2" for AudioCaps 2.0 of csv_files_v2, which has more training clips.

    Another sample rate in the folder's name and other formats are taken as they are. Clips that are gone from YouTube
    are left out; a warning says how many.
    """
    subset = {"valid": "val"}.get(split, split)
    expected = f"csv_files_{version}/{subset}.csv and audio_32000Hz/{subset}/<youtube id>_<start>.flac"
    folders = sorted(place.glob(f"audio_*Hz/{subset}"))
    files = [name for name in os.listdir(folders[0]) if not name.startswith(".")] if folders else []
    if not files:
        raise DataNotFoundError(f"AudioCaps has no recordings for {split} in {place}: expected {expected}")
    rate = int(folders[0].parent.name.removeprefix("audio_").removesuffix("Hz"))
    options = {
        "sr": rate,
        "audio_format": Path(files[0]).suffix[1:],
        "exclude_removed_audio": False,
        "version": version,
    }
    columns = read_columns("audiocaps", place, subset, expected, **options)
    present = columns["is_on_disk"]
    warn_of_missing("AudioCaps", split, present)
    rows = [row for row, is_present in enumerate(present) if is_present]
    paths = [folders[0] / columns["fname"][row] for row in rows]
    return Listing(paths, [columns["captions"][row] for row in rows])


@cache
def ids_957() -> frozenset[str]:
    """The YouTube ids of the 957 test clips that ML-CLAP's code lists; the table of AudioCaps 1.0 has 975.

    >>> len(ids_957())
    957
    """
    return frozenset((Path(__file__).parent / "audiocaps_957.txt").read_text(encoding="ascii").split())


def in_957(stem: str) -> bool:
    """Whether the file `<youtube id>_<start>` is one of the 957: `in_957("7fmOlUlwoNg_20")`."""
    return stem.rpartition("_")[0] in ids_957()


def versioned(card: DatasetCard, version: str) -> DatasetCard:
    """The card of "audiocaps:v2", AudioCaps 2.0."""
    if version not in TITLES:
        raise unknown("version of AudioCaps", version, TITLES)
    options = {"version": version}
    return replace(card, title=TITLES[version], make=partial(read, **options), fetch=partial(fetch, **options))


def fetch(root: Path, version: str = "v1") -> None:
    """Download it from YouTube; `$PULLPUSH_YTDLP` holds further options of yt-dlp, such as those for cookies."""
    for program in ("yt-dlp", "ffmpeg"):
        if shutil.which(program) is None:
            raise DataNotFoundError(f"AudioCaps comes from YouTube by {program}, which is not on your path: install it")
    options = {"version": version, "ytdlp_opts": shlex.split(os.environ.get(YTDLP, "")), "num_dl_attempts": ATTEMPTS}
    module_of("audiocaps").download_audiocaps_datasets(root, ("train", "val", "test"), verbose=1, **options)


CARD = DatasetCard(
    name="audiocaps",
    make=read,
    title="AudioCaps",
    about="About 50,000 clips of ten seconds from YouTube, with one caption each for training and five for testing.",
    source="Kim et al. 2019, AudioCaps: generating captions for audios in the wild",
    authors="Kim, Kim, Lee and Kim; the videos' owners",
    licence="captions: MIT, at first for academic use only; the sounds are the video owners'",
    citation="audiocaps",
    folder="AUDIOCAPS",
    fetch=fetch,
    of=versioned,
    subsets={"957": Subset(957, in_957), "975": Subset(975, bool)},
)

"""Captioned sounds: a function a set, called as the set is; `aac-datasets` reads and fetches them.

`captioned.yaml` says of each what it is.
"""

import importlib
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pullpush.cache import home
from pullpush.data.recordings.registry import Listing, Subset, cards, listing, require_all, warn_of_missing
from pullpush.data.sets.folder import read_captions
from pullpush.errors import DataNotFoundError, PullPushError

YTDLP = "PULLPUSH_YTDLP"
ATTEMPTS = 3  # a clip of YouTube
CLOTHO = {"train": ("dev", "development"), "valid": ("val", "validation"), "test": ("eval", "evaluation")}
WAVCAPS = {
    "AudioSet_SL": "audioset_no_audiocaps_v1",
    "BBC_Sound_Effects": "bbc",
    "FreeSound": "freesound_no_clotho_v2",
    "SoundBible": "soundbible",
}


def module_of(name: str) -> ModuleType:
    """The module of aac-datasets that reads and fetches a dataset; `PullPushError` if it is not installed."""
    import torchaudio

    # aac-datasets 0.7 imports this name for a type that we never meet; torchaudio 2.11 has dropped it.
    lacks = not hasattr(torchaudio, "AudioMetaData")
    try:
        if lacks:
            torchaudio.AudioMetaData = object
        return importlib.import_module(f"aac_datasets.datasets.functional.{name}")
    except ModuleNotFoundError as error:
        raise PullPushError(
            f"reading {name} needs {error.name}, which is not installed: pip install 'pullpush[full]'"
        ) from error
    finally:
        if lacks:
            del torchaudio.AudioMetaData


def read_columns(name: str, place: Path, subset: str, expected: str, **options: Any) -> dict[str, list]:
    """The columns that aac-datasets gives for a subset of the dataset `name` in the folder `place`; options: of its
    function; expected: what is in the folder if all is well, for the `DataNotFoundError` where it is not."""
    load = getattr(module_of(name), f"load_{name}_dataset")
    try:
        columns = load(place.parent, subset, -1, **options)
    except (RuntimeError, OSError, KeyError, AssertionError) as error:
        raise DataNotFoundError(f"{place} is not as {name} is published ({subset}): expected {expected}") from error
    return columns[0] if isinstance(columns, tuple) else columns


def download(name: str, *subsets: str, **options: Any) -> Callable[[Path], None]:
    """What fetches a dataset by aac-datasets, from Zenodo or where its authors put it: the `fetch` of its card."""

    def fetch(root: Path) -> None:
        functions = vars(module_of(name))
        if subsets:
            functions[f"download_{name}_datasets"](root, subsets, verbose=1, **options)
        else:
            functions[f"download_{name}_dataset"](root, verbose=1, **options)

    return fetch


def audiocaps(place: Path, split: str, version: str = "v1") -> Listing:
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
        "audio_format": Counter(Path(file).suffix[1:] for file in files).most_common(1)[0][0],
        "exclude_removed_audio": False,
        "version": version,
    }
    columns = read_columns("audiocaps", place, subset, expected, **options)
    present = columns["is_on_disk"]
    warn_of_missing("AudioCaps", split, present)
    whole = Listing([folders[0] / name for name in columns["fname"]], columns["captions"])
    return whole.rows(row for row, is_present in enumerate(present) if is_present)


@cache
def ids_957() -> frozenset[str]:
    """YouTube's names of the 957 test clips that ML-CLAP's code lists; the table of AudioCaps 1.0 has 975."""
    return frozenset(Path(__file__).with_name("audiocaps_957.txt").read_text(encoding="ascii").split())


def fetch_audiocaps(root: Path, version: str = "v1") -> None:
    """Download it from YouTube; `$PULLPUSH_YTDLP` holds further options of yt-dlp, such as those for cookies."""
    for program in ("yt-dlp", "ffmpeg"):
        if shutil.which(program) is None:
            raise DataNotFoundError(f"AudioCaps comes from YouTube by {program}, which is not on your path: install it")
    options = {"version": version, "ytdlp_opts": shlex.split(os.environ.get(YTDLP, "")), "num_dl_attempts": ATTEMPTS}
    download("audiocaps", "train", "val", "test", **options)(root)


def clotho(place: Path, split: str) -> Listing:
    """Clotho 2.1: clotho_csv_files/clotho_captions_development.csv, clotho_audio_files/development/*.wav and so on."""
    subset, folder = CLOTHO[split]
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


def macs(place: Path, split: str) -> Listing:
    """MACS: MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and audio/*.wav of TAU Urban Acoustic Scenes 2019.

    It has no splits: every tenth file by name is for validation and every tenth for the test.
    """
    expected = "MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and its files in audio"
    columns = read_columns("macs", place, "full", expected)
    return every_tenth([place / "audio" / name for name in columns["fname"]], columns["captions"], split)


def wavcaps(place: Path, split: str) -> Listing:
    """WavCaps: json_files/SoundBible/sb_final.json, Audio/SoundBible/*.flac and so on, of the sources that are there.

    What AudioCaps or Clotho hold, too, is left out by the lists of `aac-datasets`. It has no splits: see `macs`.
    """
    paths, captions = [], []
    for source, subset in WAVCAPS.items():
        if (place / "Audio" / source).is_dir():
            expected = f"json_files/{source}/*.json and all of Audio/{source}"
            columns = read_columns("wavcaps", place, subset, expected)
            paths += [place / "Audio" / source / name for name in columns["fname"]]
            captions += columns["captions"]
    if not paths:
        raise DataNotFoundError(f"WavCaps has none of {', '.join(WAVCAPS)} in {place / 'Audio'}")
    require_all("WavCaps", paths, "its JSON files")
    return every_tenth(paths, captions, split)


def every_tenth(paths: Sequence[Path], captions: Sequence[list[str]], split: str) -> Listing:
    """A split of a dataset that has none: of every ten files by name, eight train, one validates and one tests.

    >>> every_tenth([Path(f"{n}.wav") for n in range(10)], [["a"]] * 10, "test").paths[0].name
    '9.wav'
    """
    order = sorted(range(len(paths)), key=lambda row: paths[row].name)
    share = {"valid": {8}, "test": {9}}.get(split, set(range(8)))
    return Listing(list(paths), list(captions)).rows(row for number, row in enumerate(order) if number % 10 in share)


def published_captions() -> dict[str, list[str]]:
    """The training captions of those published sets that are here, by name; of the others nothing.

    A set's captions are in the folder `captions` of the cache, as `clotho_train.csv` (see `folder.read_captions`), or
    with its recordings (see `registry.listing`).
    """
    found = {}
    for name in ("audiocaps", "clotho", "wavcaps"):
        path = home() / "captions" / f"{name}_train.csv"
        try:
            groups = list(read_captions(path).values()) if path.is_file() else listing(name, "train").captions
        except PullPushError:  # not here, or the library that reads it is not
            continue
        found[name] = [caption for captions in groups for caption in captions]
    return found


SHORT = Subset(957, lambda file: file.rpartition("_")[0] in ids_957())  # of files `<youtube id>_<start>`
FURTHER = {
    "audiocaps": {"fetch": fetch_audiocaps, "subsets": {"957": SHORT, "975": Subset(975, bool)}},
    "clotho": {"fetch": download("clotho", *(subset for subset, _ in CLOTHO.values()))},
    "macs": {"fetch": download("macs")},
    "wavcaps": {"fetch": download("wavcaps", *WAVCAPS.values())},
}
READERS = (audiocaps, clotho, macs, wavcaps)
CARDS = cards(Path(__file__).with_suffix(".yaml"), {each.__name__: each for each in READERS}, FURTHER)

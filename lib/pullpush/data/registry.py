"""Datasets by name: where their files are, what they hold, how to fetch them.

Captioned sets are read by `aac-datasets`, which knows their layouts. ESC-50, UrbanSound8K and VGGSound are each one
official CSV beside the recordings, which is read as it is: `soundata` would fetch an index of its own for sets that are
on disk already, and `datasets` knows neither layout. A new dataset is one function and one row of `DATASETS`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd

from pullpush.cache import home
from pullpush.data.tables import read_captions
from pullpush.errors import DataNotFoundError, PullPushError, unknown

DATA = "PULLPUSH_DATA"
NAMED = 5  # missing files that an error names


def datasets_home() -> Path:
    """Where datasets are looked for: `$PULLPUSH_DATA`, else `datasets` in the cache; it need not exist yet."""
    named = os.environ.get(DATA)
    return Path(named).expanduser().absolute() if named else home() / "datasets"


class Listing(NamedTuple):
    """What a dataset's own files say of one split: recordings, and the captions or the label of each."""

    paths: list[Path]
    captions: list[list[str]] = []  # noqa: RUF012  (never changed)
    labels: list[str] = []  # noqa: RUF012
    classes: tuple[str, ...] = ()


class Archive(NamedTuple):
    """A file to download and unpack."""

    url: str
    hash: str | None


@dataclass(frozen=True)
class Dataset:
    """One dataset.

    title: as papers write it; folder: its place below `datasets_home()`; listing: (its folder, split) → files;
    labelled: one label a clip in place of captions; fetch: fills its folder; how: what to do where `fetch` cannot.
    """

    title: str
    folder: str
    listing: Callable[[Path, str], Listing] = field(repr=False)
    labelled: bool = False
    fetch: Callable[[Path], None] | None = field(default=None, repr=False)
    how: str = ""

    def where(self, root: Path) -> Path:
        """Its folder."""
        return root / self.folder


def find(name: str) -> Dataset:
    """The dataset `name`, or "folder:/path" for recordings of your own.

    Raises:
        UnknownNameError: no such dataset; the nearest names are given.
    """
    kind, _, path = name.partition(":")
    if kind == "folder" and path:
        return Dataset(Path(path).name, str(Path(path).expanduser().absolute()), folder)
    if name not in DATASETS:
        raise unknown("dataset", name, [*DATASETS, "folder:/path"])
    return DATASETS[name]


def listing(name: str, split: str) -> Listing:
    """The files of one split ("train", "valid" or "test") with their captions or labels.

    Raises:
        UnknownNameError: no such dataset.
        DataNotFoundError: it is not on disk, or recordings are missing.
        PullPushError: its tables are not as published, or the library that reads it is not installed.
    """
    dataset, root = find(name), datasets_home()
    place = dataset.where(root)
    if not place.is_dir():
        get = f"`pullpush fetch {name}` gets it" if dataset.fetch else dataset.how or "put it there"
        raise DataNotFoundError(
            f"{dataset.title} is not at {place}: {get}, or set ${DATA} to the folder that holds {dataset.folder}"
        )
    return dataset.listing(place, split)


def fetch(name: str) -> Path:
    """Download a dataset to its place below `datasets_home()`; what is there already is kept.

    Raises:
        UnknownNameError: no such dataset.
        DataNotFoundError: it cannot be fetched; the message says what to do.
        PullPushError: the library that fetches it is not installed.
    """
    dataset, root = find(name), datasets_home()
    if dataset.fetch is None:
        raise DataNotFoundError(f"{dataset.title} cannot be fetched: {dataset.how}; put it at {dataset.where(root)}")
    root.mkdir(parents=True, exist_ok=True)
    try:
        dataset.fetch(root)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, PullPushError):
            raise
        raise DataNotFoundError(
            f"cannot fetch {dataset.title}: {error}; is there a network? Otherwise put it at {dataset.where(root)}"
        ) from error
    return dataset.where(root)


# ---------------------------------------------------------------- captioned sets, by aac-datasets


@contextmanager
def _names_that_torchaudio_dropped() -> Iterator[None]:
    """aac-datasets 0.7 imports `torchaudio.AudioMetaData`, for a type that we never meet; torchaudio 2.11 has none."""
    import torchaudio

    if hasattr(torchaudio, "AudioMetaData"):
        yield
        return
    torchaudio.AudioMetaData = object
    try:
        yield
    finally:
        del torchaudio.AudioMetaData


def _aac(module: str) -> ModuleType:
    """A module of aac-datasets that reads and fetches one dataset.

    Raises:
        PullPushError: it is not installed.
    """
    try:
        with _names_that_torchaudio_dropped():
            return importlib.import_module(f"aac_datasets.datasets.functional.{module}")
    except ModuleNotFoundError as error:
        raise PullPushError(
            f"reading {module} needs {error.name}, which is not installed: pip install 'pullpush[full]'"
        ) from error


def _read(module: str, place: Path, subset: str, expected: str, **options: Any) -> dict[str, list]:
    """The columns that aac-datasets gives for a subset; `expected` says what is in the folder if all is well."""
    load = getattr(_aac(module), f"load_{module}_dataset")
    try:
        columns = load(place.parent, subset, -1, **options)
    except (RuntimeError, OSError, KeyError, AssertionError) as error:
        raise DataNotFoundError(f"{place} is not as {module} is published ({subset}): expected {expected}") from error
    return columns[0] if isinstance(columns, tuple) else columns


def audiocaps(place: Path, split: str) -> Listing:
    """AudioCaps 1.0: `train.csv` (or csv_files_v1/train.csv) and `audio_32000Hz/train/<youtube id>_<start>.flac`.

    Another sample rate in the folder's name and other formats are taken as they are. Clips that are gone from YouTube
    are left out; a warning says how many.
    """
    subset = {"valid": "val"}.get(split, split)
    expected = f"csv_files_v1/{subset}.csv and audio_32000Hz/{subset}/<youtube id>_<start>.flac"
    folders = sorted(place.glob(f"audio_*Hz/{subset}"))
    files = [name for name in os.listdir(folders[0]) if not name.startswith(".")] if folders else []
    if not files:
        raise DataNotFoundError(f"AudioCaps has no recordings for {split} in {place}: expected {expected}")
    rate = int(folders[0].parent.name.removeprefix("audio_").removesuffix("Hz"))
    options = {"sr": rate, "audio_format": Path(files[0]).suffix[1:], "exclude_removed_audio": False}
    columns = _read("audiocaps", place, subset, expected, **options)
    there = columns["is_on_disk"]
    _warn_of_missing("AudioCaps", split, there)
    rows = [row for row, here in enumerate(there) if here]
    paths = [folders[0] / columns["fname"][row] for row in rows]
    return Listing(paths, [columns["captions"][row] for row in rows])


def clotho(place: Path, split: str) -> Listing:
    """Clotho 2.1: clotho_csv_files/clotho_captions_development.csv, clotho_audio_files/development/*.wav and so on."""
    subset, folder = {
        "train": ("dev", "development"),
        "valid": ("val", "validation"),
        "test": ("eval", "evaluation"),
    }[split]
    table = place / "clotho_csv_files" / f"clotho_captions_{folder}.csv"
    recordings = place / "clotho_audio_files" / folder
    if table.is_file() and recordings.is_dir():
        _all_there("Clotho", [recordings / name for name in read_captions(table)], table)
    expected = (
        f"clotho_csv_files/clotho_captions_{folder}.csv, clotho_csv_files/clotho_metadata_{folder}.csv and one file in "
        f"clotho_audio_files/{folder} for each of their rows"
    )
    columns = _read("clotho", place, subset, expected)
    return Listing([recordings / name for name in columns["fname"]], columns["captions"])


def macs(place: Path, split: str) -> Listing:
    """MACS: MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and audio/*.wav of TAU Urban Acoustic Scenes 2019.

    It has no splits: every tenth file by name is for validation and every tenth for the test.
    """
    columns = _read("macs", place, "full", "MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and its files in audio")
    paths = [place / "audio" / name for name in columns["fname"]]
    return _every_tenth(paths, columns["captions"], split)


def wavcaps(place: Path, split: str) -> Listing:
    """WavCaps: json_files/SoundBible/sb_final.json, Audio/SoundBible/*.flac and so on, of the sources that are there.

    What AudioCaps or Clotho hold, too, is left out by the lists of `aac-datasets`. It has no splits: see `macs`.
    """
    paths, captions = [], []
    for source, subset in WAVCAPS.items():
        if (place / "Audio" / source).is_dir():
            columns = _read("wavcaps", place, subset, f"json_files/{source}/*.json and all of Audio/{source}")
            paths += [place / "Audio" / source / name for name in columns["fname"]]
            captions += columns["captions"]
    if not paths:
        raise DataNotFoundError(f"WavCaps has none of {', '.join(WAVCAPS)} in {place / 'Audio'}")
    _all_there("WavCaps", paths, "its JSON files")
    return _every_tenth(paths, captions, split)


WAVCAPS = {
    "AudioSet_SL": "audioset_no_audiocaps_v1",
    "BBC_Sound_Effects": "bbc",
    "FreeSound": "freesound_no_clotho_v2",
    "SoundBible": "soundbible",
}


def _every_tenth(paths: Sequence[Path], captions: Sequence[list[str]], split: str) -> Listing:
    """A split of a dataset that has none: of every ten files by name, eight train, one validates and one tests."""
    order = sorted(range(len(paths)), key=lambda row: paths[row].name)
    share = {"valid": {8}, "test": {9}}.get(split, set(range(8)))
    rows = [row for number, row in enumerate(order) if number % 10 in share]
    return Listing([paths[row] for row in rows], [captions[row] for row in rows])


def folder(place: Path, split: str) -> Listing:
    """Recordings of your own: `captions.csv` with the columns split (train, valid or val, test), file_name and caption,
    or caption_1, caption_2, …; recordings beside it or in `audio`."""
    table = place / "captions.csv"
    names = {"valid": ("valid", "val")}.get(split, (split,))
    try:
        captions = read_captions(table, split=names[0])
    except ValueError:
        if len(names) == 1:
            raise
        captions = read_captions(table, split=names[1])
    recordings = place / "audio" if (place / "audio").is_dir() else place
    paths = [recordings / name for name in captions]
    _all_there(place.name, paths, table)
    return Listing(paths, list(captions.values()))


# ---------------------------------------------------------------- labelled sets, by their official tables


def esc50(place: Path, split: str) -> Listing:
    """ESC-50: meta/esc50.csv with filename and category, audio/*.wav; all five folds."""
    table = _table(place / "meta" / "esc50.csv", ["filename", "target", "category"])
    return _labelled("ESC-50", [place / "audio" / name for name in table["filename"]], table["category"])


def urbansound8k(place: Path, split: str) -> Listing:
    """UrbanSound8K: metadata/UrbanSound8K.csv with slice_file_name, fold and class, audio/fold1/*.wav …; all folds."""
    table = _table(place / "metadata" / "UrbanSound8K.csv", ["slice_file_name", "fold", "class"])
    files = zip(table["fold"], table["slice_file_name"], strict=True)
    return _labelled("UrbanSound8K", [place / "audio" / f"fold{fold}" / name for fold, name in files], table["class"])


def vggsound(place: Path, split: str) -> Listing:
    """VGGSound: vggsound.csv without a head (youtube id, start seconds, label, split) and, in `audio`, clips called
    <youtube id>_<start, six digits>.wav, .flac or .mp3; what is gone from YouTube is left out with a warning."""
    columns = ["id", "start", "label", "split"]
    table = _table(place / "vggsound.csv", columns, names=columns, header=None)
    classes = tuple(sorted(set(table["label"])))
    table = table[table["split"] == split]
    stems = [f"{one}_{int(start):06d}" for one, start in zip(table["id"], table["start"], strict=True)]
    files = {path.stem: path for path in (place / "audio").glob("*") if path.suffix in (".wav", ".flac", ".mp3")}
    there = [stem in files for stem in stems]
    _warn_of_missing("VGGSound", split, there)
    if not any(there):
        raise DataNotFoundError(f"no clip of {place / 'vggsound.csv'} is in {place / 'audio'}, such as {stems[:1]}.wav")
    labels = [label for label, here in zip(table["label"], there, strict=True) if here]
    return Listing([files[stem] for stem in stems if stem in files], labels=labels, classes=classes)


def _table(path: Path, columns: Sequence[str], **options: Any) -> pd.DataFrame:
    """A CSV as published.

    Raises:
        DataNotFoundError: it is not there.
        PullPushError: it is another table.
    """
    if not path.is_file():
        raise DataNotFoundError(f"no table at {path}: is the dataset complete?")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise PullPushError(f"{path} is not a CSV table in UTF-8: {error}") from error
    if missing := [name for name in columns if name not in table.columns]:
        raise PullPushError(f"{path} needs the columns {', '.join(columns)}, lacks {', '.join(missing)}")
    return table


def _labelled(title: str, paths: list[Path], labels: pd.Series) -> Listing:
    _all_there(title, paths, "its table")
    return Listing(paths, labels=list(labels), classes=tuple(sorted(set(labels))))


def _all_there(title: str, paths: Sequence[Path], table: Path | str) -> None:
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise DataNotFoundError(
            f"{title} lacks {len(missing)} of the {len(paths)} recordings of {table}: {', '.join(missing[:NAMED])}"
            f"{' …' if missing[NAMED:] else ''}; unpack it again, or remove their rows"
        )


def _warn_of_missing(title: str, split: str, there: Sequence[bool]) -> None:
    missing = sum(not here for here in there)
    if missing:
        warnings.warn(f"{title}: {missing} of {len(there)} clips for {split} are not on disk, left out", stacklevel=4)


# ---------------------------------------------------------------- fetching


def _fetch_audiocaps(root: Path) -> None:
    for program in ("yt-dlp", "ffmpeg"):
        if shutil.which(program) is None:
            raise DataNotFoundError(f"AudioCaps comes from YouTube by {program}, which is not on your path: install it")
    _aac("audiocaps").download_audiocaps_datasets(root, ("train", "val", "test"), verbose=1)


def _fetch_clotho(root: Path) -> None:
    _aac("clotho").download_clotho_datasets(root, ("dev", "val", "eval"), verbose=1)


def _fetch_macs(root: Path) -> None:
    _aac("macs").download_macs_dataset(root, verbose=1)


def _fetch_wavcaps(root: Path) -> None:
    _aac("wavcaps").download_wavcaps_datasets(root, tuple(WAVCAPS.values()), verbose=1)


def archive(name: str) -> Callable[[Path], None]:
    """A function that downloads and unpacks ARCHIVES[name]."""

    def unpack(root: Path) -> None:
        import pooch

        url, digest = ARCHIVES[name]
        processor = (pooch.Unzip if url.endswith(".zip") else pooch.Untar)(extract_dir=str(root))
        pooch.retrieve(url, digest, fname=url.rpartition("/")[2], path=root / "archives", processor=processor)

    return unpack


ARCHIVES: dict[str, Archive] = {
    "esc50": Archive("https://github.com/karolpiczak/ESC-50/archive/master.zip", None),  # packed anew by its host
    "urbansound8k": Archive(
        "https://zenodo.org/records/1203745/files/UrbanSound8K.tar.gz", "md5:9aa69802bbf37fb986f71ec1483a196e"
    ),
}
DATASETS: Mapping[str, Dataset] = {
    "audiocaps": Dataset("AudioCaps", "AUDIOCAPS", audiocaps, fetch=_fetch_audiocaps),
    "clotho": Dataset("Clotho", "CLOTHO_v2.1", clotho, fetch=_fetch_clotho),
    "macs": Dataset("MACS", "MACS", macs, fetch=_fetch_macs),
    "wavcaps": Dataset("WavCaps", "WavCaps", wavcaps, fetch=_fetch_wavcaps),
    "esc50": Dataset("ESC-50", "ESC-50-master", esc50, labelled=True, fetch=archive("esc50")),
    "urbansound8k": Dataset("US8K", "UrbanSound8K", urbansound8k, labelled=True, fetch=archive("urbansound8k")),
    "vggsound": Dataset(
        "VGGSound",
        "vggsound",
        vggsound,
        labelled=True,
        how="its clips come from YouTube, by its authors' list vggsound.csv, to audio/<id>_<start, six digits>.wav",
    ),
}

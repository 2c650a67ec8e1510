"""Datasets of the Hugging Face hub, or of a folder in one of its formats, by `hf:name`.

    hf:owner/name                                    columns and splits are found by their types and names
    hf:owner/name?text=caption&test=eval             or said: config, revision, audio, text, train, valid, test
    hf:/data/mine                                    a folder of Parquet files

`pullpush fetch hf:name` fetches it once and lays it out as a folder of your own (see `folder.py`): it is read without
the hub and without its library from then on.
"""

import csv
import importlib
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from tqdm.auto import tqdm

from pullpush.cache import PARTIAL, content_key
from pullpush.data.recordings.registry import DatasetCard
from pullpush.data.sets.folder import read
from pullpush.errors import DataNotFoundError, PullPushError, check_all_known, unknown
from pullpush.progress import hidden

OPTIONS = ("config", "revision", "audio", "text", "train", "valid", "test")
SPLITS = {
    "train": ("train", "training"),
    "valid": ("validation", "valid", "val", "dev"),
    "test": ("test", "eval", "evaluation"),
}
TEXTS = ("caption", "captions", "text", "texts", "sentence", "transcription", "description")
NUMBERED = re.compile(r"caption_?\d+")
ADVICE = "; recordings in a folder of your own with captions.csv are read by folder:PATH, without it"
TENTHS = {"valid": 8, "test": 9}  # which of ten training clips a split takes that the dataset has not


class Row(NamedTuple):
    """A row: its split here, the name of its recording, the file's bytes, their key, its captions."""

    split: str
    name: str
    sound: bytes
    key: str
    captions: list[str]


def located(card: DatasetCard, argument: str) -> DatasetCard:
    """The card of one dataset, `name?option=value&…`; options and folders of this machine get a place of their own."""
    name, _, query = argument.partition("?")
    try:
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
    except ValueError as error:
        raise PullPushError(f"hf:{argument}: expected hf:name?option=value&option=value, got {query!r}") from error
    check_all_known("option of hf:", options, OPTIONS)
    local = Path(name).expanduser()
    name = str(local.absolute()) if local.is_dir() else name
    place = re.sub(r"[^\w.-]+", "--", name).strip("-.")
    if options or local.is_dir():
        place = f"{local.name}-{content_key([name, options], length=8)}"
    folder = f"hf/{place}"
    return replace(card, title=local.name, folder=folder, fetch=partial(fetch, name, options, folder))


def fetch(name: str, options: Mapping[str, str], folder: str, root: Path) -> None:
    """Download a dataset by `datasets` and write its recordings and captions to a folder, all of it or nothing."""
    place = root / folder
    if place.is_dir():
        return
    splits = load_dataset(name, options.get("config"), revision=options.get("revision"))
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=place.parent) as partial_folder:
        whole = Path(partial_folder) / "whole"
        _write(whole, name, _rows(name, splits, options))
        os.replace(whole, place)


def load_dataset(name: str, *arguments: Any, **options: Any) -> Any:
    """What `datasets` reads from the hub, which it keeps in its cache, or from files of this machine."""
    try:
        return importlib.import_module("datasets").load_dataset(name, *arguments, **options)
    except ModuleNotFoundError as error:
        raise PullPushError(f"{name} needs datasets, which is not installed: pip install 'pullpush[full]'") from error
    except FileNotFoundError as error:  # what the hub's own error for a dataset that is not there is
        raise DataNotFoundError(f"no dataset {name!r} on the hub or this machine: {error}") from error
    except OSError:
        raise
    except Exception as error:  # its builders wrap what they need in errors of their own
        inner: BaseException = error
        while inner.__cause__:
            inner = inner.__cause__
        raise PullPushError(f"datasets cannot read {name!r}: {inner}{ADVICE}") from error


def _write(place: Path, name: str, rows: Iterator[Row]) -> None:
    """Recordings in `audio`, each of a split once, captions in `captions.csv`, one row a caption; what lacks either is
    counted.
    """
    (place / "audio").mkdir(parents=True)
    names, known, lacking = set[str](), dict[tuple[str, str], str](), 0
    with open(place / "captions.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["split", "file_name", "caption"])
        for number, row in enumerate(rows):
            if not row.sound or not row.captions:
                lacking += 1
                continue
            recording = row.split, row.key
            if recording not in known:
                own = row.name if row.name and row.name not in names else f"{row.split}-{number:06d}-{row.name}"
                names.add(own)
                known[recording] = own
                (place / "audio" / own).write_bytes(row.sound)
            table.writerows((row.split, known[recording], caption) for caption in row.captions)
    if lacking:
        warnings.warn(f"{name}: {lacking} clips without a recording or without a caption left out", stacklevel=4)


def _rows(name: str, splits: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Row]:
    """The clips of all splits, their files as they are: decoding is our own business."""
    sound_type = importlib.import_module("datasets").Audio
    chosen = _splits(name, list(splits), options)
    tenths = {tenth: split for split, tenth in TENTHS.items() if split not in chosen}
    for split, theirs in chosen.items():
        features = splits[theirs].features
        sounds = [column for column, kind in features.items() if isinstance(kind, sound_type)][:1]
        numbered = sorted(
            (column for column in features if NUMBERED.fullmatch(column)), key=lambda text: (len(text), text)
        )
        known = numbered or [column for column in TEXTS if column in features][:1]
        audio = _columns(name, features, options, "audio", sounds)[0]
        texts = _columns(name, features, options, "text", known)
        data = splits[theirs].select_columns([audio, *texts]).cast_column(audio, sound_type(decode=False))
        numbers: dict[str, int] = {}  # of recordings, which may have a row for each caption
        for row in tqdm(data, desc=f"writing {name} {theirs}", unit="clip", disable=hidden()):
            sound = row[audio] or {}
            path = sound.get("path") or ""
            content = sound.get("bytes") or (Path(path).read_bytes() if Path(path).is_file() else b"")
            several = ([row[column]] if isinstance(row[column], str) else row[column] or () for column in texts)
            captions = [text.strip() for each in several for text in each if text and text.strip()]
            number = numbers.setdefault(key := content_key(content), len(numbers))
            here = tenths.get(number % 10, split) if split == "train" else split
            yield Row(here, Path(path).name, content, key, captions)


def _splits(name: str, offered: Sequence[str], options: Mapping[str, str]) -> dict[str, str]:
    """Which of the dataset's splits is which of ours."""
    chosen = {}
    for split, names in SPLITS.items():
        if split in options and options[split] not in offered:
            raise unknown(f"split of {name}", options[split], offered)
        found = [options[split]] if split in options else [theirs for theirs in names if theirs in offered]
        chosen |= {split: found[0]} if found else {}
    if "train" not in chosen:
        raise PullPushError(f"{name} has no split to train on, only {', '.join(offered)}: hf:{name}?train={offered[0]}")
    return chosen


def _columns(
    name: str, features: Mapping[str, Any], options: Mapping[str, str], kind: str, found: list[str]
) -> list[str]:
    """The columns of audio or text: those that are said, or else those that are found."""
    columns = options[kind].split(",") if kind in options else found
    if columns and all(column in features for column in columns):
        return columns
    noun, several = {"audio": ("audio", ""), "text": ("captions", ", several with commas")}[kind]
    raise PullPushError(
        f"{name} needs a column of {noun}, has {', '.join(features)}: name it, as in hf:{name}?{kind}=…{several}"
    )


CARD = DatasetCard(
    name="hf",
    make=read,
    title="A dataset of the hub",
    about="Recordings with captions from the Hugging Face hub: hf:owner/name, or of a folder in one of its formats.",
    source="its authors",
    folder="hf",
    of=located,
    how="name one, as in hf:owner/name",
)

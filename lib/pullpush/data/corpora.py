"""Real datasets as worlds: AudioCaps, Clotho, WavCaps and your own in splits that learn and test as rendered scenes do.

    corpus = load_corpus(CorpusConfig("audiocaps"))     # train, valid, test, as `load_world` gives them
    sounds = load_labelled("esc50")                     # clips with one label each, for zero-shot classification

Datasets lie in their published layouts under `$PULLPUSH_DATA` (see `registry.py`). Recordings are decoded once, cut to
`seconds` as CLAP models do, and memory-mapped from the cache from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE, load_audio
from pullpush.data.clips import Columns, NoLabelsError, StoredClips, World, identity
from pullpush.data.listing import Listing, require_all
from pullpush.data.registry import datasets_home, find, listing
from pullpush.data.tables import read_captions
from pullpush.errors import PullPushError, unknown
from pullpush.progress import hidden
from pullpush.source import digest

KIND = "recordings"
PROMPT = "This is a sound of {label}."  # SupCLAP §4.1
SPLITS = ("train", "valid", "test")
BLOCK = 64  # recordings that a thread decodes at a time
EDGE = 4096  # bytes at either end of a file that tell it from another of its size


@dataclass(frozen=True)
class CorpusConfig:
    """Which dataset, and how much of it.

    dataset: a name in the registry, or "folder:/path" (see `registry.find`); seconds: longer recordings are cut to
    this; n_train, n_valid, n_test: only the first so many clips of a split; None takes all; sample_rate: in Hz, that
    recordings are kept in.
    """

    dataset: str
    seconds: float = 10.0
    n_train: int | None = None
    n_valid: int | None = None
    n_test: int | None = None
    sample_rate: int = SAMPLE_RATE

    def __post_init__(self) -> None:
        for name in ("seconds", "n_train", "n_valid", "n_test", "sample_rate"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be more than 0, got {value}")

    def load(self) -> World:
        """See `load_corpus`."""
        return load_corpus(self)


def load_corpus(config: CorpusConfig) -> World:
    """A dataset of captioned recordings, decoded or read from the cache.

    Returns:
        Clips with the columns "file" and "english" (captions). Captions in further languages are read from
        `captions.fra.csv` and so on beside the dataset's own files; relevance is 1 for the same file, else 0.

    Raises:
        UnknownNameError: no such dataset.
        DataNotFoundError: it is not on disk; the message says where it is looked for and how to get it.
        AudioError: a recording cannot be read; the message names it.
        PullPushError: it has labels in place of captions, or a reading library is not installed.
        CacheError: the cache cannot be written.
    """
    dataset = find(config.dataset)
    if dataset.labelled:
        raise PullPushError(f"{dataset.title} has labels, not captions: it is for zero-shot classification")
    splits = {
        split: _load(config.dataset, split, config.seconds, getattr(config, f"n_{split}"), config.sample_rate)
        for split in SPLITS
    }
    tables = _tables(dataset.where(datasets_home()))
    texts = [[list(captions) for captions in splits[split].columns["english"]] for split in ("train", "valid")]
    words = content_key([texts, {language: _fingerprint(path) for language, path in tables.items()}])
    return World(config, splits, words)


def load_labelled(
    name: str, *, seconds: float = 10.0, n: int | None = None, sample_rate: int = SAMPLE_RATE
) -> StoredClips:
    """A dataset's clips for zero-shot classification: its test split, or all of it where it has folds only.

    n: only so many clips, spread evenly over the files; seconds, sample_rate: see `CorpusConfig`.

    Returns:
        Clips with the columns "file" and "label".

    Raises:
        UnknownNameError, DataNotFoundError, AudioError, PullPushError, CacheError: see `load_corpus`.
    """
    dataset = find(name)
    if not dataset.labelled:
        raise PullPushError(f"{dataset.title} has captions, not labels: take a set such as esc50")
    return _load(name, "test", seconds, n, sample_rate)


def load_folder(
    folder: str | Path,
    table: str | Path,
    *,
    split: str | None = None,
    language: str = "eng",
    seconds: float | None = 10.0,
    sample_rate: int = SAMPLE_RATE,
) -> StoredClips:
    """Recordings in a folder with their captions in one language, in the layout of Clotho and AudioCaps.

    Args:
        folder: holds the recordings, of any sample rate and number of channels.
        table: CSV of captions (see `read_captions`).
        split: rows of the table to use, where it has a column `split`.
        language: ISO 639-3 code of the captions.
        seconds: longer recordings are cut to this, as CLAP models do; None keeps all.
        sample_rate: in Hz, that they are kept in.

    Raises:
        DataNotFoundError: the table, or recordings that it names, are missing.
        AudioError: a recording cannot be read; the message names it.
        CacheError: the cache cannot be written.
    """
    captions, name = read_captions(table, split=split), split or Path(table).stem
    paths = [Path(folder) / file for file in captions]
    require_all(Path(folder).name, paths, table)
    waveforms, key = _stored(paths, ["folder", name], seconds, sample_rate, name)
    columns = {"file": list(captions), "captions": list(captions.values())}
    write = partial(captions_in, language)
    return StoredClips(name, key, waveforms, np.arange(len(waveforms)), columns, write)


def captions_in(spoken: str, columns: Columns, language: str) -> list[list[str]]:
    """The column "captions", which is in one language; `UnknownNameError` for others."""
    if language != spoken:
        raise unknown("language of these captions", language, [spoken])
    return [list(texts) for texts in columns["captions"]]


def recorded_captions(title: str, tables: Mapping[str, Path], columns: Columns, language: str) -> list[list[str]]:
    """The captions of recordings: English ones from their column, others from tables; none for files not in a table.

    Raises:
        UnknownNameError: the dataset has no captions in this language.
    """
    if language in tables:
        table = read_captions(tables[language])
        return [table.get(name, []) for name in columns["file"]]
    if language != "eng" or "english" not in columns:
        raise unknown(
            f"language of {title}'s captions", language, [*(["eng"] if "english" in columns else []), *tables]
        )
    return [list(captions) for captions in columns["english"]]


def label_prompts(classes: Sequence[str], language: str = "eng") -> list[str]:
    """One English sentence a class, as SupCLAP asks for it.

    Raises:
        NoLabelsError: there are no classes.
        UnknownNameError: another language than English.

    >>> label_prompts(["dog_bark"])
    ['This is a sound of dog bark.']
    """
    if not classes:
        raise NoLabelsError("these clips have captions, not labels: take a classification set such as esc50")
    if language != "eng":
        raise unknown("language of these classes", language, ["eng"])
    return [PROMPT.format(label=label.replace("_", " ")) for label in classes]


# ---------------------------------------------------------------- decoding


def _load(name: str, split: str, seconds: float, most: int | None, sample_rate: int) -> StoredClips:
    """One split, decoded first if it is not in the cache."""
    dataset, root = find(name), datasets_home()
    files = listing(name, split)
    if most is not None and most < len(files.paths):
        files = _some(files, most, spread=dataset.labelled)
    if not files.paths:
        raise PullPushError(f"{dataset.title} has no clip for {split}: see {dataset.where(root)}")
    about = [name.partition(":")[0], split]
    waveforms, key = _stored(files.paths, about, seconds, sample_rate, f"{dataset.title} {split}")
    columns: dict[str, Sequence] = {"file": [path.name for path in files.paths]}
    if dataset.labelled:
        columns["label"] = [files.classes.index(label) for label in files.labels]
    else:
        columns["english"] = files.captions
    return StoredClips(
        split,
        key,
        waveforms,
        np.arange(len(waveforms)),
        columns,
        partial(recorded_captions, dataset.title, {} if dataset.labelled else _tables(dataset.where(root))),
        identity,
        partial(label_prompts, files.classes),
    )


def _stored(
    paths: Sequence[Path], about: Sequence[Any], seconds: float | None, sample_rate: int, title: str
) -> tuple[store.Waveforms, str]:
    """Recordings from the cache, decoded first if they are not there, and their key; about: what else names them."""
    names, prints = [path.name for path in paths], [_fingerprint(path) for path in paths]
    key = content_key([digest(_decode), *about, seconds, sample_rate, names, prints])
    folder = cached_dir(KIND, key, lambda place: _decode(place, paths, seconds, sample_rate, title))
    return store.read(folder, sample_rate=sample_rate), key


def _some(files: Listing, most: int, *, spread: bool) -> Listing:
    """`most` of the clips: the first ones, or spread evenly, since labelled sets are often sorted by class."""
    rows = np.linspace(0, len(files.paths) - 1, most).round().astype(int) if spread else range(most)
    given = {part: getattr(files, part) for part in ("paths", "captions", "labels") if getattr(files, part)}
    chosen: dict[str, Any] = {part: [values[row] for row in rows] for part, values in given.items()}
    return files._replace(**chosen)


def _tables(folder: Path) -> dict[str, Path]:
    """Captions in further languages: `captions.fra.csv` beside the dataset's own files."""
    return {path.name.split(".")[1]: path for path in sorted(folder.glob("captions.*.csv"))}


def _fingerprint(path: Path) -> str:
    """Tells a file from another version of it, without reading all of it: its size, its beginning and its end."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        digest.update(file.read(EDGE))
        file.seek(max(0, size - EDGE))
        digest.update(file.read(EDGE))
    return digest.hexdigest()


def _decode(folder: Path, paths: Sequence[Path], seconds: float | None, sample_rate: int, name: str) -> None:
    """Write all recordings to the folder (see store.py)."""
    store.write(folder, _decoded(paths, seconds, sample_rate, name))


def _decoded(paths: Sequence[Path], seconds: float | None, sample_rate: int, name: str) -> Iterator[np.ndarray]:
    """Recordings, each `(T,)` int16, in order; threads suffice, as decoders release the GIL."""
    blocks = [paths[start : start + BLOCK] for start in range(0, len(paths), BLOCK)]
    parallel = joblib.Parallel(n_jobs=min(len(blocks), joblib.cpu_count()), prefer="threads", return_as="generator")
    with tqdm(total=len(paths), desc=f"decoding {name}", unit="clip", disable=hidden()) as bar:
        for waves in parallel(joblib.delayed(_decode_block)(block, seconds, sample_rate) for block in blocks):
            bar.update(len(waves))
            yield from waves


def _decode_block(paths: Sequence[Path], seconds: float | None, sample_rate: int) -> list[np.ndarray]:
    most = None if seconds is None else round(seconds * sample_rate)
    waves = (load_audio(path, sample_rate=sample_rate)[:most].clamp(-1, 1) for path in paths)
    return [store.to_int16(wave.numpy()) for wave in waves]  # clamped, since resampling may pass full scale

"""Real datasets as worlds: AudioCaps, Clotho, WavCaps and your own in splits that learn and test as rendered scenes do.

    corpus = load_corpus(CorpusConfig("audiocaps"))     # train, valid, test, as `load_world` gives them
    sounds = load_labelled("esc50")                     # clips with one label each, for zero-shot classification

Datasets lie in their published layouts under `$PULLPUSH_DATA` (see `registry.py`). Recordings are decoded once, at the
rate that the encoder hears, and memory-mapped from the cache from then on.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pullpush.cache import content_key
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import StoredClips, World, identity
from pullpush.data.recordings.overlap import check_heard
from pullpush.data.recordings.registry import DatasetCard, Listing, datasets_home, find, listing
from pullpush.data.recordings.texts import CLEANINGS, every_caption, label_prompts, recorded_captions
from pullpush.data.store import fingerprint, stored
from pullpush.errors import PullPushError, unknown
from pullpush.golden import versions
from pullpush.settings import check_fields

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class CorpusConfig:
    """Which dataset, and how much of it.

    dataset: a name in the registry, "folder:/path" or "hf:name" (see `registry.find`); seconds: longer recordings are
    cut to this; None: to what the dataset's longest clips have, 30 for Clotho, 10 for the others; `math.inf` cuts none.
    n_train, n_valid, n_test: only the first so many clips of a split; None takes all. sample_rate: in Hz, that
    recordings are kept in: what the audio encoder takes. subset: of the test clips, by a name of the dataset's:
    AudioCaps has "957", which ML-CLAP and The Language Encoder test on, and "975", all of its table. text_cleaning:
    "none", "ml-clap" or "dcase", see `texts.clean`. every_caption: a training clip comes once for each caption.
    """

    dataset: str
    seconds: float | None = None
    n_train: int | None = None
    n_valid: int | None = None
    n_test: int | None = None
    sample_rate: int = SAMPLE_RATE
    subset: str | None = None
    text_cleaning: str = "none"
    every_caption: bool = False

    def __post_init__(self) -> None:
        check_fields(self, of="corpus", but=("seconds",) if self.seconds == math.inf else ())
        for name in ("seconds", "n_train", "n_valid", "n_test", "sample_rate"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be more than 0, got {value}")
        if self.text_cleaning not in CLEANINGS:
            raise unknown("text cleaning", self.text_cleaning, CLEANINGS)

    def load(self) -> World:
        return load_corpus(self)


def load_corpus(config: CorpusConfig) -> World:
    """A dataset of captioned recordings, decoded or read from the cache.

    Returns:
        Clips with the columns "file" and "captions", in the set's own language. Those in further ones are read from
        `captions.fra.csv` and so on beside the dataset's own files; relevance is 1 for the same file, else 0.

    Raises:
        UnknownNameError: no such dataset, or subset of it.
        DataNotFoundError: it is not on disk; the message says where it is looked for and how to get it.
        AudioError: a recording cannot be read; the message names it.
        PullPushError: it has labels in place of captions, or a reading library is not installed.
    """
    splits = {split: load_split(config, split) for split in SPLITS}
    dataset = find(config.dataset)
    check_heard(dataset.title, splits)
    if config.every_caption:
        splits["train"] = every_caption(splits["train"], dataset.language)
    tables = _tables(dataset.where(datasets_home()))
    texts = [[list(captions) for captions in splits[split].columns["captions"]] for split in ("train", "valid")]
    told = [versions("data/texts"), config.text_cleaning, config.every_caption, texts]
    words = content_key([*told, {language: fingerprint(path) for language, path in tables.items()}])
    return World(config, splits, words, parts=("data/decoding", "data/texts", "data/relevance", "data/labels"))


def load_split(config: CorpusConfig, split: str) -> StoredClips:
    """One of the splits alone, "train", "valid" or "test"; raises as `load_corpus` does."""
    dataset = find(config.dataset)
    if dataset.labelled:
        raise PullPushError(f"{dataset.title} has labels, not captions: it is for zero-shot classification")
    if config.subset is not None and config.subset not in dataset.subsets:
        raise unknown(f"subset of {dataset.title}", config.subset, dataset.subsets)
    files = listing(config.dataset, split)
    if split == "test" and config.subset is not None:
        subset = dataset.subsets[config.subset]
        files = files.rows(row for row, path in enumerate(files.paths) if subset.holds(path.stem))
        if lost := max(0, subset.clips - len(files.paths)):
            told = f"{lost} of the {subset.clips} clips of subset {config.subset} are missing"
            warnings.warn(f"{dataset.title}: {told}", stacklevel=4)
    files = files.rows(range(len(files.paths))[: getattr(config, f"n_{split}")])
    options = {"cleaning": config.text_cleaning, "seconds": config.seconds, "sample_rate": config.sample_rate}
    return _clips(dataset, config.dataset, split, files, {"captions": files.captions}, **options)


def load_labelled(
    name: str, *, seconds: float | None = None, n: int | None = None, sample_rate: int = SAMPLE_RATE
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
    files = listing(name, "test")
    if n is not None and n < len(files.paths):  # spread, since labelled sets are often sorted by class
        files = files.rows(int(row) for row in np.linspace(0, len(files.paths) - 1, n).round())
    columns: dict[str, Sequence] = {"label": [files.classes.index(label) for label in files.labels]}
    return _clips(dataset, name, "test", files, columns, seconds=seconds, sample_rate=sample_rate)


def _clips(
    dataset: DatasetCard,
    name: str,
    split: str,
    files: Listing,
    columns: dict[str, Sequence],
    *,
    cleaning: str = "none",
    seconds: float | None,
    sample_rate: int,
) -> StoredClips:
    """Files as clips, decoded first if they are not in the cache."""
    if not files.paths:
        raise PullPushError(f"{dataset.title} has no clip for {split}: see {dataset.where(datasets_home())}")
    longest = dataset.seconds if seconds is None else None if seconds == math.inf else seconds
    about, title = [name.partition(":")[0], split], f"{dataset.title} {split}"
    tables = {} if dataset.labelled else _tables(dataset.where(datasets_home()))
    waveforms, key = stored(files.paths, about, longest, sample_rate, title)
    return StoredClips(
        split,
        key,
        waveforms,
        np.arange(len(waveforms)),
        {"file": [path.name for path in files.paths], **columns},
        partial(recorded_captions, dataset.title, tables, cleaning, own=dataset.language),
        identity,
        partial(label_prompts, files.classes, prompt=dataset.prompt, own=dataset.language),
    )


def _tables(folder: Path) -> dict[str, Path]:
    """Captions in further languages: `captions.fra.csv` beside the dataset's own files."""
    return {path.name.split(".")[1]: path for path in sorted(folder.glob("captions.*.csv"))}

"""Real datasets as worlds: AudioCaps, Clotho, WavCaps and your own in splits that learn and test as rendered scenes do.

    corpus = load_corpus(CorpusConfig("audiocaps"))     # train, valid, test, as `load_world` gives them
    sounds = load_labelled("esc50")                     # clips with one label each, for zero-shot classification

Datasets lie in their published layouts under `$PULLPUSH_DATA` (see `registry.py`). Recordings are decoded once, cut to
`seconds` as CLAP models do, and memory-mapped from the cache from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data.audio import SAMPLE_RATE, load_audio, numbers, padded, to_int16
from pullpush.data.registry import Listing, datasets_home, find, listing
from pullpush.data.speech import SpeechConfig, SpeechWorld, load_speech
from pullpush.data.tables import read_captions
from pullpush.data.world import World, WorldConfig, load_world
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

    dataset: a name in the registry, or "folder:/path" (see `registry.folder`); seconds: longer recordings are cut to
    this; n_train, n_valid, n_test: only the first so many clips of a split; None takes all.
    """

    dataset: str
    seconds: float = 10.0
    n_train: int | None = None
    n_valid: int | None = None
    n_test: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "n_train", "n_valid", "n_test"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be more than 0, got {value}")


class Ragged(NamedTuple):
    """Recordings of different lengths, one after the other in one array; `stops` is where each ends."""

    samples: np.ndarray
    stops: np.ndarray

    def row(self, index: int) -> np.ndarray:
        """One recording, `(T,)`."""
        return self.samples[self.stops[index - 1] if index else 0 : self.stops[index]]


@dataclass(frozen=True)
class Recordings:
    """One split of a real dataset; offers what a `Split` of scenes does.

    name: "train", "valid" or "test"; waveforms: int16 at 16 kHz, memory-mapped; lengths: `(N,)` int64, samples; names:
    of the N files; texts: each clip's English captions; key: content key of the recordings; tables: language → CSV of
    its captions; classes, targets: names of the classes and the class of each clip, where the dataset has labels.
    """

    graded = False  # no scene graph: a caption fits its own clip, and what else it may fit nobody knows

    name: str
    waveforms: Any
    lengths: Tensor
    names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    key: str
    dataset: str = ""
    tables: Mapping[str, Path] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    targets: tuple[int, ...] = ()
    _captions: dict[str, list[list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.names)

    def audio(self, index: int | Sequence[int] | Tensor | slice) -> tuple[Tensor, Tensor]:
        """Some clips `(B, T)` float32 in [-1, 1] at 16 kHz, padded with zeros, and their lengths `(B,)` int64."""
        rows = numbers(index, len(self))
        return padded([self.waveforms.row(row) for row in rows]), self.lengths[rows]

    def captions(self, language: str) -> list[list[str]]:
        """Every clip's captions in one language; none where a clip is not in the language's table.

        Raises:
            UnknownNameError: the dataset has no captions in this language.
        """
        if language not in self._captions:
            if language != "eng" and language not in self.tables:
                raise unknown(f"language of {self.dataset}'s captions", language, ["eng", *self.tables])
            if language == "eng":
                self._captions[language] = [list(own) for own in self.texts]
            else:
                table = read_captions(self.tables[language])
                self._captions[language] = [table.get(name, []) for name in self.names]
        return self._captions[language]

    def head(self, n: int) -> Recordings:
        """The first `n` clips (all, if there are fewer), as a split of its own."""
        waveforms = self.waveforms[:n] if isinstance(self.waveforms, np.ndarray) else self.waveforms
        return replace(
            self,
            waveforms=waveforms,
            lengths=self.lengths[:n],
            names=self.names[:n],
            texts=self.texts[:n],
            targets=self.targets[:n],
            key=content_key([self.key, n]),
            _captions={},
        )

    def relevance(self, other: Recordings | None = None) -> Tensor:
        """1 where the clips are the same and 0 elsewhere, `(N, M)` float32: all that such datasets know."""
        theirs = {name: column for column, name in enumerate((self if other is None else other).names)}
        matrix = torch.zeros(len(self), len(theirs))
        for row, name in enumerate(self.names):
            if name in theirs:
                matrix[row, theirs[name]] = 1
        return matrix

    @property
    def labels(self) -> Tensor:
        """Each clip's class, `(N,)` int64: a number in `classes`.

        Raises:
            ValueError: the dataset has captions, not labels.
        """
        if not self.classes:
            raise ValueError(f"{self.dataset} has captions, not labels: take a classification set such as esc50")
        return torch.tensor(self.targets, dtype=torch.int64)

    @property
    def prompts(self) -> list[str]:
        """One sentence a class, as SupCLAP asks for it, in the order of the labels."""
        return [PROMPT.format(label=label.replace("_", " ")) for label in self.classes]


class Corpus(NamedTuple):
    """A real dataset in three splits: what a `World` is to chapters and to training."""

    config: CorpusConfig
    train: Recordings
    valid: Recordings
    test: Recordings

    @property
    def identity(self) -> list[Any]:
        """What tells this corpus from another, for the names of runs: recordings and captions that training sees."""
        texts = [hashlib.sha256(repr(split.texts).encode()).hexdigest() for split in (self.train, self.valid)]
        tables = {name: _fingerprint(path) for name, path in self.train.tables.items()}
        return [self.config, self.train.key, self.valid.key, texts, tables]


def load_corpus(config: CorpusConfig) -> Corpus:
    """A dataset of captioned recordings, decoded or read from the cache.

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
    splits = [_load(config.dataset, split, config.seconds, getattr(config, f"n_{split}")) for split in SPLITS]
    return Corpus(config, *splits)


def load_labelled(name: str, *, seconds: float = 10.0, n: int | None = None) -> Recordings:
    """A dataset's clips for zero-shot classification: its test split, or all of it where it has folds only.

    n: only so many clips, spread evenly over the files.

    Raises:
        UnknownNameError, DataNotFoundError, AudioError, PullPushError, CacheError: see `load_corpus`.
    """
    dataset = find(name)
    if not dataset.labelled:
        raise PullPushError(f"{dataset.title} has captions, not labels: take a set such as esc50")
    return _load(name, "test", seconds, n)


def load_data(config: WorldConfig | CorpusConfig | SpeechConfig) -> World | Corpus | SpeechWorld:
    """What a configuration describes: rendered scenes, a real dataset, or spoken captions."""
    loaders: dict[type, Callable] = {WorldConfig: load_world, CorpusConfig: load_corpus, SpeechConfig: load_speech}
    return loaders[type(config)](config)


# ---------------------------------------------------------------- decoding


def _load(name: str, split: str, seconds: float, most: int | None) -> Recordings:
    """One split, decoded first if it is not in the cache."""
    dataset, root = find(name), datasets_home()
    files = listing(name, split)
    if most is not None and most < len(files.paths):
        files = _some(files, most, spread=dataset.labelled)
    if not files.paths:
        raise PullPushError(f"{dataset.title} has no clip for {split}: see {dataset.where(root)}")
    names = tuple(path.name for path in files.paths)
    prints = [_fingerprint(path) for path in files.paths]
    key = content_key([digest(_decode), name.partition(":")[0], split, seconds, names, prints])
    folder = cached_dir(KIND, key, lambda place: _decode(place, files.paths, seconds, f"{dataset.title} {split}"))
    stops = np.load(folder / "stops.npy")
    classes = files.classes
    return Recordings(
        split,
        Ragged(np.memmap(folder / "samples.i16", dtype="<i2", mode="r"), stops),
        torch.from_numpy(np.diff(stops, prepend=0)),
        names,
        tuple(map(tuple, files.captions)),
        key,
        dataset=dataset.title,
        tables={} if dataset.labelled else _tables(dataset.where(root)),
        classes=classes,
        targets=tuple(classes.index(label) for label in files.labels),
    )


def _some(files: Listing, most: int, *, spread: bool) -> Listing:
    """`most` of the clips: the first ones, or spread evenly, since labelled sets are often sorted by class."""
    rows = np.linspace(0, len(files.paths) - 1, most).round().astype(int) if spread else range(most)
    return files._replace(
        **{
            part: [own[row] for row in rows]
            for part in ("paths", "captions", "labels")
            if (own := getattr(files, part))
        }
    )


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


def _decode(folder: Path, paths: Sequence[Path], seconds: float, name: str) -> None:
    """Write samples.i16 and stops.npy of all recordings."""
    lengths = []
    with open(folder / "samples.i16", "wb") as file:
        for waves in _decoded(paths, round(seconds * SAMPLE_RATE), name):
            for wave in waves:
                file.write(wave.tobytes())
                lengths.append(len(wave))
    np.save(folder / "stops.npy", np.cumsum(lengths, dtype=np.int64))


def _decoded(paths: Sequence[Path], most: int, name: str) -> Iterator[list[np.ndarray]]:
    """Blocks of recordings, each `(T,)` int16, in order; threads suffice, as decoders release the GIL."""
    blocks = [paths[start : start + BLOCK] for start in range(0, len(paths), BLOCK)]
    parallel = joblib.Parallel(n_jobs=min(len(blocks), joblib.cpu_count()), prefer="threads", return_as="generator")
    with tqdm(total=len(paths), desc=f"decoding {name}", unit="clip", disable=hidden()) as bar:
        for waves in parallel(joblib.delayed(_decode_block)(block, most) for block in blocks):
            bar.update(len(waves))
            yield waves


def _decode_block(paths: Sequence[Path], most: int) -> list[np.ndarray]:
    waves = [load_audio(path)[:most].clamp(-1, 1).numpy() for path in paths]  # resampling may pass full scale
    return [to_int16(wave) for wave in waves]

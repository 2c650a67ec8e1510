"""A world: scenes rendered from a bank of recordings, in splits that share no combination of events.

Each split is rendered once, cached by the content of everything that shapes it, and memory-mapped from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data.audio import INT16, numbers, to_int16
from pullpush.data.banks import Bank, create_bank
from pullpush.data.batches import Batch, Item, PairDataset, collate, loader
from pullpush.data.compose import SAMPLE_RATE, SceneConfig, compose, render, single
from pullpush.data.grammar import captions as write_captions
from pullpush.data.pitch import pitch_bank
from pullpush.data.scene import Scene, from_json, relevance_matrix, to_json
from pullpush.data.vocabulary import Event, check_language, vocabulary_files
from pullpush.progress import hidden
from pullpush.source import digest, digest_files

__all__ = [
    "Batch",
    "Item",
    "PairDataset",
    "Split",
    "World",
    "WorldConfig",
    "collate",
    "load_world",
    "loader",
    "split_of",
]

SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}  # of all combinations of two or more events
ATTEMPTS = 20  # draws until a scene of valid or test differs from those before it
BLOCK = 64  # scenes that a thread renders at a time


@dataclass(frozen=True)
class WorldConfig:
    """Everything that shapes a world; see SceneConfig for the sound of its scenes (a mapping is taken too).

    bank: name of a bank; seed: of all draws; n_train, n_valid, n_test: scenes per split; n_single_per_event:
    single-event clips per event for zero-shot classification; captions_per_scene: in each language.
    """

    bank: str = "tuxpaint"
    seed: int = 0
    n_train: int = 4000
    n_valid: int = 500
    n_test: int = 500
    n_single_per_event: int = 4
    scene: SceneConfig = field(default_factory=SceneConfig)
    captions_per_scene: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.scene, Mapping):
            object.__setattr__(self, "scene", SceneConfig(**self.scene))
        for name in ("n_train", "n_valid", "n_test", "n_single_per_event", "captions_per_scene"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class Split:
    """Rendered scenes with their truth.

    name: "train", "valid", "test" or "singles"; waveforms: `(N, T)` int16 at 16 kHz, memory-mapped, zero beyond each
    length; lengths: `(N,)` int64, samples; scenes: N scene graphs; events: the bank's events; key: content key.
    """

    graded = True  # its scene graphs say how well any caption fits any clip

    name: str
    waveforms: np.ndarray
    lengths: Tensor
    scenes: tuple[Scene, ...]
    events: tuple[Event, ...]
    key: str
    captions_per_scene: int = 5
    seed: int = 0
    _captions: dict[str, list[list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.scenes)

    def audio(self, index: int | Sequence[int] | Tensor | slice) -> tuple[Tensor, Tensor]:
        """Some clips, padded with zeros to the longest of them.

        index: one number, several, or a slice.

        Returns:
            `(B, T)` float32 in [-1, 1] and the true lengths `(B,)` int64, in samples.
        """
        rows = numbers(index, len(self))
        lengths = self.lengths[torch.from_numpy(rows)]
        longest = int(lengths.max()) if len(rows) else 0
        samples = np.stack([self.waveforms[row, :longest] for row in rows]) if len(rows) else np.zeros((0, 0))
        return torch.from_numpy(samples.astype(np.float32) / INT16), lengths

    def captions(self, language: str) -> list[list[str]]:
        """`captions_per_scene` captions of every scene in one language, written when first asked for.

        Raises:
            UnknownNameError: for a language that the book does not speak.
        """
        check_language(language)
        if language not in self._captions:
            self._captions[language] = [
                write_captions(scene, self.events, language=language, n=self.captions_per_scene, seed=self.seed)
                for scene in self.scenes
            ]
        return self._captions[language]

    def head(self, n: int) -> Split:
        """The first `n` clips (all, if there are fewer), as a split of its own."""
        return replace(
            self,
            waveforms=self.waveforms[:n],
            lengths=self.lengths[:n],
            scenes=self.scenes[:n],
            key=content_key([self.key, n]),
            _captions={},
        )

    def relevance(self, other: Split | None = None) -> Tensor:
        """Graded relevance of the clips of `other` (default: this split) for this split's clips, `(N, M)` float32."""
        return relevance_matrix(self.scenes, self.scenes if other is None else other.scenes, self.events)

    @property
    def labels(self) -> Tensor:
        """The event that each clip holds, `(N,)` int64: of clips with one event only.

        Raises:
            ValueError: a clip holds several events.
        """
        if any(scene.relation != "single" for scene in self.scenes):
            raise ValueError(f"only single-event clips have labels; split {self.name!r} holds scenes of several events")
        return torch.tensor([scene.events[0] for scene in self.scenes], dtype=torch.int64)


class World(NamedTuple):
    """A bank and the splits rendered from it; `singles` are for zero-shot classification (see `Split.labels`)."""

    config: WorldConfig
    bank: Bank
    train: Split
    valid: Split
    test: Split
    singles: Split

    @property
    def identity(self) -> list[Any]:
        """What tells this world from another, for the names of runs: how it was rendered, and what its captions say."""
        words = digest_files(*vocabulary_files())
        return [self.config, content_key(self.bank.events), words, self.train.key, self.valid.key]


def load_world(config: WorldConfig) -> World:
    """Render a world, or read it from the cache.

    No combination of two or more events occurs in two of train, valid and test; within valid and within test,
    scenes differ in their graphs as far as the bank allows, so that a caption fits one clip best. Singles
    hold every event `n_single_per_event` times, with augmentation of their own.

    Raises:
        UnknownNameError, DataNotFoundError: the bank is unknown, or cannot be fetched.
        PullPushError: the bank is too small for the splits.
        CacheError: the cache cannot be written.
    """
    bank = create_bank(config.bank)
    sizes = {"train": config.n_train, "valid": config.n_valid, "test": config.n_test}
    sizes["singles"] = config.n_single_per_event
    return World(config, bank, **{name: _load_split(name, size, bank, config) for name, size in sizes.items()})


def split_of(events: Sequence[int], bank: Bank, *, seed: int) -> str:
    """The split that owns a combination of events, by a hash of their names: the same in every process."""
    names = sorted(bank.events[event].name for event in events)
    point = _number("combination", seed, *names) / 2**64
    return "train" if point < SHARES["train"] else "valid" if point < 1 - SHARES["test"] else "test"


def _number(*parts: object) -> int:
    """A number below 2^64 that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def _load_split(name: str, size: int, bank: Bank, config: WorldConfig) -> Split:
    """Read the split from the cache, rendering it first if it is not there."""
    key = content_key([digest(_draw_singles, _draw_scenes, _write), bank.key, name, size, config.seed, config.scene])

    def build(folder: Path) -> None:
        scenes = _draw_singles(bank, size, config) if name == "singles" else _draw_scenes(name, size, bank, config)
        _write(folder, scenes, bank, config.scene, name)

    folder = cached_dir("worlds", key, build)
    return Split(
        name,
        np.load(folder / "waveforms.npy", mmap_mode="r"),
        torch.from_numpy(np.load(folder / "lengths.npy")),
        from_json((folder / "scenes.jsonl").read_text(encoding="utf-8")),
        bank.events,
        key,
        config.captions_per_scene,
        config.seed,
    )


def _draw_scenes(name: str, size: int, bank: Bank, config: WorldConfig) -> list[Scene]:
    """Scenes of train, valid or test from the combinations that the split owns."""

    def allowed(events: tuple[int, ...]) -> bool:
        return len(events) == 1 or split_of(events, bank, seed=config.seed) == name

    seen: set[tuple] = set()
    scenes = []
    for index in range(size):
        for attempt in range(1 if name == "train" else ATTEMPTS):
            seed = _number(name, config.seed, attempt)
            scene = compose(bank, config.scene, seed=seed, index=index, events_allowed=allowed)
            if scene.graph not in seen:
                break
        seen.add(scene.graph)
        scenes.append(scene)
    return scenes


def _draw_singles(bank: Bank, each: int, config: WorldConfig) -> list[Scene]:
    """`each` scenes of every event alone."""
    seed = _number("singles", config.seed)
    return [
        single(bank, event, config.scene, seed=seed, index=index)
        for event in range(len(bank.events))
        for index in range(each)
    ]


def _write(folder: Path, scenes: Sequence[Scene], bank: Bank, config: SceneConfig, name: str) -> None:
    """Render the scenes into `folder`: waveforms.npy, lengths.npy, scenes.jsonl."""
    lengths = np.array([round(scene.duration * SAMPLE_RATE) for scene in scenes], dtype=np.int64)
    shape = (len(scenes), round(config.duration * SAMPLE_RATE))
    header = {"descr": "<i2", "fortran_order": False, "shape": shape}
    # Plain writes rather than a writable memory map, in which a full disk would kill the process.
    with open(folder / "waveforms.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in _rendered(scenes, bank, config, name):
            file.write(block.tobytes())
    np.save(folder / "lengths.npy", lengths)
    (folder / "scenes.jsonl").write_text(to_json(scenes), encoding="utf-8")


def _rendered(scenes: Sequence[Scene], bank: Bank, config: SceneConfig, name: str) -> Iterator[np.ndarray]:
    """The scenes' samples in order, in blocks `(B, T)` int16; threads suffice, as the FFTs release the GIL."""
    pitch_bank(bank, config.max_semitones)  # before the threads start, so that one of them makes it
    blocks = [scenes[start : start + BLOCK] for start in range(0, len(scenes), BLOCK)]
    jobs = min(len(blocks), joblib.cpu_count())
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    with tqdm(total=len(scenes), desc=f"rendering {name}", unit="scene", disable=hidden()) as bar:
        for block in parallel(joblib.delayed(_render_block)(block, bank, config) for block in blocks):
            bar.update(len(block))
            yield block


def _render_block(scenes: Sequence[Scene], bank: Bank, config: SceneConfig) -> np.ndarray:
    """A few scenes, `(B, T)` int16, zero beyond each length."""
    block = np.zeros((len(scenes), round(config.duration * SAMPLE_RATE)), dtype="<i2")
    for row, scene in zip(block, scenes, strict=True):
        wave = render(scene, bank, config).numpy()
        row[: len(wave)] = to_int16(wave)
    return block

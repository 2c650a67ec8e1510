"""Clips whose audio is replaced by what an encoder made of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pullpush.cache import content_key
from pullpush.data.clips import Clips, Columns, Index
from pullpush.data.store import row_numbers
from pullpush.errors import AudioError


@dataclass(frozen=True, eq=False)
class Heard(ABC):
    """Clips whose audio is replaced; all else is the clips' own (see `data.clips.Clips`).

    clips: what was heard.
    """

    clips: Clips

    @property
    def key(self) -> str:
        """Names the clips and what replaces their audio, both by their bytes."""
        return ""

    def __len__(self) -> int:
        return len(self.clips)

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """`(N,)` int64, numbers in each clip's row."""

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """What replaces the audio of some clips, `(B, T)` float32, zero beyond each length, and the lengths `(B,)`.

        Raises:
            AudioError: a sample rate was asked for, which these have none of.
        """
        if sample_rate is not None:
            raise AudioError(
                f"features have no sample rate, got {sample_rate}: ask the clips that were encoded, or take an audio "
                "encoder for features (see on_features)"
            )
        return self.rows(row_numbers(index, len(self)))

    @abstractmethod
    def rows(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """`audio` of clips by their numbers, `(B,)` int64."""

    @property
    def name(self) -> str:
        """The clips' own."""
        return self.clips.name

    @property
    def graded(self) -> bool:
        """The clips' own."""
        return self.clips.graded

    @property
    def columns(self) -> Columns:
        """The clips' own."""
        return self.clips.columns

    @property
    def labels(self) -> Tensor:
        """The clips' own."""
        return self.clips.labels

    def captions(self, language: str) -> list[list[str]]:
        """The clips' own."""
        return self.clips.captions(language)

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        """The clips' own."""
        return self.clips.prompts(language, template)

    def relevance(self, other: Clips | None = None) -> Tensor:
        """The clips' own."""
        return self.clips.relevance(other)

    @abstractmethod
    def select(self, rows: Sequence[int], *, name: str | None = None) -> Heard:
        """Some of the clips with what replaces their audio."""

    def head(self, n: int) -> Heard:
        """The first `n` clips."""
        return self.select(range(min(n, len(self))))


@dataclass(frozen=True, eq=False)
class Encoded(Heard):
    """Clips as features of an encoder; features: `(N, D)` float32, memory-mapped.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    >>> Encoded(world.test, np.ones((2, 3), np.float32)).audio(0)
    (tensor([[1., 1., 1.]]), tensor([3]))
    """

    features: np.ndarray = field(repr=False)
    key: str = ""

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) != len(self.clips):
            raise ValueError(f"{len(self.clips)} clips need features ({len(self.clips)}, D), got {self.features.shape}")

    @classmethod
    def read(cls, clips: Clips, folder: Path, key: str) -> Encoded:
        """What `frozen.write_features` wrote of these clips."""
        return cls(clips, np.asarray(np.load(folder / "features.npy", mmap_mode="r")), key)

    @property
    def dim(self) -> int:
        """D, the size of a clip's features."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64, all D."""
        return torch.full((len(self),), self.dim)

    def rows(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """See Heard."""
        features = self.features[rows]  # a copy: the cache cannot be written to
        return torch.from_numpy(features), torch.full((len(features),), self.dim)

    def select(self, rows: Sequence[int], *, name: str | None = None) -> Encoded:
        """See Heard."""
        part = self.clips.select(rows, name=name)
        return Encoded(part, self.features[row_numbers(rows, len(self))], content_key([self.key, part.key]))


@dataclass(frozen=True, eq=False)
class Activated(Heard):
    """Clips as activations of an encoder's lower part, as many a clip as it is long.

    values: all of them, float16, memory-mapped, one clip after the other; bounds: `(N, 2)` int64, where each clip's
    begin and end.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    >>> Activated(world.test, np.ones(3, np.float16), np.array([[0, 2], [2, 3]])).audio([0, 1])
    (tensor([[1., 1.],
            [1., 0.]]), tensor([2, 1]))
    """

    values: np.ndarray = field(repr=False)
    bounds: np.ndarray = field(repr=False)
    key: str = ""

    def __post_init__(self) -> None:
        if self.bounds.shape != (len(self.clips), 2):
            raise ValueError(f"{len(self.clips)} clips need bounds ({len(self.clips)}, 2), got {self.bounds.shape}")

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64, activations of each clip."""
        return torch.from_numpy(self.bounds[:, 1] - self.bounds[:, 0])

    def rows(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """See Heard."""
        parts = [torch.from_numpy(self.values[start:stop].astype(np.float32)) for start, stop in self.bounds[rows]]
        lengths = torch.tensor([len(part) for part in parts], dtype=torch.int64)
        return (pad_sequence(parts, batch_first=True) if parts else torch.zeros(0, 0)), lengths

    def select(self, rows: Sequence[int], *, name: str | None = None) -> Activated:
        """See Heard."""
        part = self.clips.select(rows, name=name)
        return Activated(
            part, self.values, self.bounds[row_numbers(rows, len(self))], content_key([self.key, part.key])
        )

    @classmethod
    def read(cls, clips: Clips, folder: Path, key: str) -> Activated:
        """What `frozen.write_activations` wrote of these clips."""
        stops = np.load(folder / "stops.npy")
        values = np.memmap(folder / "values.f16", dtype="<f2", mode="r")
        return cls(clips, values, np.stack([stops[:-1], stops[1:]], axis=1), key)

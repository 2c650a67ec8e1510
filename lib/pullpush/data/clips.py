"""Clips: audio with all that is known of it, whatever it comes from.

Every source (rendered scenes, recordings, speech …) is a function that fills `StoredClips`; what uses clips asks for
the protocol `Clips` alone, which features of a frozen encoder offer, too (`training.frozen.Encoded`).
"""

from collections import UserDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data.store import Waveforms, row_numbers
from pullpush.errors import PullPushError, looked_up

SPLITS = ("train", "valid", "test")
Index = int | Sequence[int] | Tensor | slice
Columns = Mapping[str, Sequence[Any]]


class NoLabelsError(PullPushError, ValueError):
    """Clips that have no labels were asked for them; the message says which have."""


class Clips(Protocol):
    """What all clips offer."""

    @property
    def name(self) -> str:
        """ "train", "valid", "test" …"""

    @property
    def key(self) -> str:
        """Names what the clips hold, their audio and their columns, however it was made."""

    @property
    def graded(self) -> bool:
        """Whether relevance has degrees."""

    @property
    def columns(self) -> Columns:
        """What else is known of each clip, by name: its scene, speaker, file, label …, N values each."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64, in samples of the store."""

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some clips: `(B, T)` float32 in [-1, 1], zero beyond each length, and the lengths `(B,)` int64 in samples.

        index: one number, several, or a slice; negative numbers count from the end. sample_rate: in Hz, what the
        encoder that they are for takes; default: the store's, 16,000 in all worlds of scenes. Features have none.
        """

    def captions(self, language: str) -> list[list[str]]:
        """Of every clip, none where there is no translation; `UnknownNameError` where the language has none at all."""

    @property
    def labels(self) -> Tensor:
        """Each clip's class, `(N,)` int64. Raises `NoLabelsError` where clips have none."""

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        """One sentence a class, in the order of the labels; template: holds "{label}", default: the source's sentence.
        `NoLabelsError` where there are no classes.
        """

    def relevance(self, other: "Clips | None" = None) -> Tensor:
        """How well each clip of `other` (default: these) fits each of these, `(N, M)` float32 in [0, 1]."""

    def select(self, rows: Sequence[int], *, name: str | None = None) -> "Clips":
        """Some of the clips by their numbers, in that order."""

    def head(self, n: int) -> "Clips":
        """The first `n` clips; all, if there are fewer."""


def said_of(clips: Any, languages: Iterable[str]) -> list[list[list[str]]]:
    """The captions of clips that have them as a column: what names results by such clips knows their sound alone."""
    return [clips.captions(code) for code in languages] if "captions" in getattr(clips, "columns", ()) else []


def identity(columns: Columns, other: Columns, *, column: str = "file") -> Tensor:
    """1 where a column is the same, 0 elsewhere, `(N, M)` float32; of files all that captioned recordings know."""
    return same(columns[column], other[column]).float()


def same(values: Sequence[Hashable], others: Sequence[Hashable]) -> Tensor:
    """Which of N values is which of M others, `(N, M)` bool.

    >>> same(["a", "b"], ["b", "c", "a"]).tolist()
    [[False, False, True], [True, False, False]]
    """
    number = {value: place for place, value in enumerate([*values, *others])}
    rows, items = (torch.tensor([number[value] for value in each]) for each in (values, others))
    return rows[:, None] == items


def no_prompts(language: str, template: str | None = None) -> list[str]:
    raise NoLabelsError("these clips have no classes to prompt for: take single events, or a set such as esc50")


@dataclass(frozen=True, eq=False)
class StoredClips:
    """Clips in a store of waveforms; see `Clips`.

    waveforms: the store, and rows: `(N,)` int64, which of its recordings these are; write: (columns, language) →
    captions of every clip; compare: (columns, other columns) →
    relevance `(N, M)`; ask: (language, template) → one prompt a class. Class numbers stand in the column "label".

    >>> waves = Waveforms(np.array([0, 100, 200, 300], np.int16), np.array([1, 4]))
    >>> clips = StoredClips("test", "key", waves, np.arange(2), {"file": ["a", "b"]}, lambda columns, language: [])
    >>> clips.audio([0, 1])[1], clips.select([1]).columns
    (tensor([1, 3]), {'file': ['b']})
    """

    name: str
    key: str
    waveforms: Waveforms = field(repr=False)
    rows: np.ndarray = field(repr=False)
    columns: Columns = field(repr=False)
    write: Callable[[Columns, str], list[list[str]]] = field(repr=False)
    compare: Callable[[Columns, Columns], Tensor] = field(default=identity, repr=False)
    ask: Callable[[str, str | None], list[str]] = field(default=no_prompts, repr=False)
    graded: bool = False
    _captions: dict[str, list[list[str]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        counts = {name: len(values) for name, values in self.columns.items()}
        if any(count != len(self.rows) for count in counts.values()):
            raise ValueError(f"{len(self.rows)} clips need as many values in each column, got {counts}")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sample_rate(self) -> int:
        """Of the store, in Hz."""
        return self.waveforms.sample_rate

    @property
    def lengths(self) -> Tensor:
        return torch.from_numpy(self.waveforms.lengths[self.rows])

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        return self.waveforms.audio(self.rows[row_numbers(index, len(self))], sample_rate=sample_rate)

    def captions(self, language: str) -> list[list[str]]:
        if language not in self._captions:
            self._captions[language] = self.write(self.columns, language)
        return self._captions[language]

    @property
    def labels(self) -> Tensor:
        if "label" not in self.columns:
            raise NoLabelsError(
                f"the clips of {self.name!r} have no labels: take clips of a single event (`world.singles`), or a "
                "classification set such as esc50"
            )
        return torch.tensor(self.columns["label"], dtype=torch.int64)

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        return self.ask(language, template)

    def relevance(self, other: Clips | None = None) -> Tensor:
        return self.compare(self.columns, self.columns if other is None else other.columns)

    def select(self, rows: Sequence[int], *, name: str | None = None) -> "StoredClips":
        rows = row_numbers(rows, len(self)).tolist()
        return replace(
            self,
            name=name or self.name,
            key=content_key([self.key, rows]),
            rows=self.rows[rows],
            columns={column: [values[row] for row in rows] for column, values in self.columns.items()},
            _captions={},
        )

    def head(self, n: int) -> "StoredClips":
        return self.select(range(min(n, len(self))))


class Config(Protocol):
    """What describes a world: plain data that can be hashed, and how it is loaded."""

    def load(self) -> "World": ...


class Splits(UserDict[str, Any]):
    """Clips by name; where there is a function in their place, they are made when they are first asked for."""

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if callable(found):  # threads that ask at once both make it
            found = self.data[name] = found()
        return found


@dataclass(frozen=True, eq=False)
class World:
    """Clips to learn from, to choose by and to test on, and further ones.

    config: what it was loaded from; splits: "train", "valid", "test" and further clips by name; words: what decides
    the captions, as a key; bank: of events, where clips are scenes; trunk: what encoded the clips, None for audio;
    parts: the components that made the clips and answer for them, by the names of their probes (see `golden`).
    """

    config: Any
    splits: Mapping[str, Clips]
    words: str = ""
    bank: Any = None
    trunk: Any = None
    parts: tuple[str, ...] = ()

    def split(self, name: str) -> Clips:
        """Clips by name; `UnknownNameError` where there are none."""
        return looked_up("split", name, self.splits)

    @property
    def train(self) -> Clips:
        return self.split("train")

    @property
    def valid(self) -> Clips:
        return self.split("valid")

    @property
    def test(self) -> Clips:
        return self.split("test")

    @property
    def singles(self) -> Clips:
        """Clips of one event each, for zero-shot classification; `UnknownNameError` where there are none."""
        return self.split("singles")

    @property
    def identity(self) -> list[Any]:
        """What tells this world from another, for the names of runs: clips and captions that training sees."""
        return [self.words, self.train.key, self.valid.key]


def load_data(config: Config) -> World:
    """What a configuration describes: `load_data(WorldConfig("synthetic"))` renders scenes.

    >>> from pullpush.data.scenes.world import WorldConfig
    >>> world = load_data(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1))
    >>> {name: len(clips) for name, clips in world.splits.items()}
    {'train': 4, 'valid': 2, 'test': 2, 'singles': 12}
    """
    return config.load()

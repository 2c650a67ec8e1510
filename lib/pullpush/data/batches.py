"""From clips with captions to batches: which caption in which language each clip brings, in which order.

All draws depend on (seed, epoch, index) alone, so that a resumed run sees what an uninterrupted one would have seen.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from pullpush.checks import check_count
from pullpush.data.clips import Clips
from pullpush.data.pairing import Pairing, Texts
from pullpush.data.store import Waveforms, padded, to_float
from pullpush.errors import PullPushError, TrainingError, check_known

GROUP = "group"  # the column that says which group a clip belongs to
T = TypeVar("T")


class Item(NamedTuple):
    """One pair: waveform `(length,)` float32, its texts (see `Texts`), and further columns of the clip."""

    index: int
    waveform: Tensor
    text: str | None
    language: str
    parallel: tuple[str | None, ...] = ()
    parallel_languages: tuple[str, ...] = ()
    columns: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Batch:
    """Pairs, padded to the longest clip among them.

    audio: `(B, T)` float32 (or int16, see `PairDataset.batches`), zero beyond each length; lengths: `(B,)` int64,
    samples; texts, languages: B strings; index: `(B,)` int64, the clips' numbers in their split; parallel,
    parallel_languages: K lists of B strings, further texts for the same clips (K = 0 unless the sampling is "pair" or
    "all"). A text that is None or blank is missing.
    columns: what else is known of the clips, by name: numbers and arrays as a tensor `(B, …)`, texts as a list.
    """

    audio: Tensor
    lengths: Tensor
    texts: list[str | None]
    languages: list[str]
    index: Tensor
    parallel: tuple[list[str | None], ...] = ()
    parallel_languages: tuple[list[str], ...] = ()
    columns: Mapping[str, Tensor | list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def present(self) -> list[list[bool]]:
        """For the main and each parallel list of texts: which of them are not missing."""
        return [[not is_missing(text) for text in texts] for texts in (self.texts, *self.parallel)]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """On a device, where samples as they are stored become float32."""
        moved = self.each(lambda tensor: tensor.to(device, non_blocking=non_blocking))
        return moved if moved.audio.is_floating_point() else replace(moved, audio=to_float(moved.audio))

    def each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """With all its tensors changed."""
        columns = {name: change(held) if torch.is_tensor(held) else held for name, held in self.columns.items()}
        tensors = {name: change(getattr(self, name)) for name in ("audio", "lengths", "index")}
        return replace(self, **tensors, columns=columns)


def is_missing(text: str | None) -> bool:
    """Whether a text is None or blank."""
    return text is None or not text.strip()


def present_captions(clips: Clips, language: str) -> list[list[str]]:
    """Captions of every clip in a language, but those that are blank."""
    return [[text for text in texts if not is_missing(text)] for texts in clips.captions(language)]


def collate(items: Sequence[Item]) -> Batch:
    """Items to a batch, padded with zeros to the longest clip; one item is enough."""
    if not items:
        raise ValueError("collate needs at least one item")
    audio, lengths = padded([item.waveform for item in items])
    columns = {name: [item.columns[name] for item in items] for name in items[0].columns}
    return _batch(audio, lengths, [item.index for item in items], [Texts(*item[2:6]) for item in items], columns)


def _batch(
    audio: Tensor, lengths: Tensor, index: Sequence[int], of_clips: Iterable[Texts], columns: Mapping[str, list[Any]]
) -> Batch:
    """Clips with the texts and columns of each."""
    texts, languages, parallel, parallel_languages = zip(*of_clips, strict=True)
    further = (tuple(map(list, zip(*one, strict=True))) for one in (parallel, parallel_languages))
    held = {name: _stacked(values) for name, values in columns.items()}
    numbers = torch.tensor(index, dtype=torch.int64)
    return Batch(audio, lengths, list(texts), list(languages), numbers, *further, columns=held)


def _stacked(values: list[Any]) -> Tensor | list[Any]:
    """Numbers and arrays as a tensor, anything else as the list that it is, lists that differ in length too."""
    try:
        stacked = np.stack([np.asarray(value) for value in values])
    except ValueError:
        return values
    return torch.from_numpy(stacked) if stacked.dtype.kind in "biuf" else values


def balanced_order(rows: Mapping[str, Sequence[int]], counts: Mapping[str, int], *, seed: int, epoch: int) -> list[int]:
    """The clips of an epoch in the order in which they are learnt from, a function of (seed, epoch) alone.

    Any run of consecutive clips holds each of G groups in proportion to its share p of the epoch, to within 1 + pG
    clips: two where all groups weigh the same. Each group goes on where the epoch before has left it, pass after pass,
    each in a new order: of its clips none is seen more than once oftener than another. rows, counts: see `shares`.

    >>> balanced_order({"rare": [0], "common": [1, 2, 3, 4]}, {"rare": 2, "common": 2}, seed=0, epoch=0)
    [0, 4, 0, 1]
    """
    names = [name for name in rows if counts[name]]
    taken = [_taken(np.asarray(rows[name]), counts[name], (seed, place), epoch) for place, name in enumerate(names)]
    due = [(np.arange(counts[name]) + 0.5) / counts[name] for name in names]  # when in the epoch each clip's turn is
    return np.concatenate(taken)[np.argsort(np.concatenate(due), kind="stable")].tolist()


def shares(groups: Sequence[object], weights: Mapping[str, float]) -> tuple[dict[str, list[int]], dict[str, int]]:
    """The clips of each group, and how many of them an epoch of as many clips takes; raises as `apportioned` does.

    >>> shares(["a", "b", "b", "b"], {"a": 1, "b": 1})
    ({'a': [0], 'b': [1, 2, 3]}, {'a': 2, 'b': 2})
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(groups):
        rows.setdefault(str(name), []).append(row)
    return rows, apportioned({name: len(held) for name, held in rows.items()}, weights)


def apportioned(sizes: Mapping[str, int], weights: Mapping[str, float]) -> dict[str, int]:
    """How many clips of each group an epoch takes that has as many clips as all groups together; 0 leaves one out."""
    if not all(0 <= weight < np.inf for weight in weights.values()) or not any(weights.values()):
        raise ValueError(f"weights of groups are finite, 0 or more, one of them is more than 0, got {dict(weights)}")
    total = sum(sizes.values())
    found = f"the clips' groups are {', '.join(f'{name} ({size})' for name, size in sizes.items())}"
    if empty := [name for name in weights if not sizes.get(name)]:
        raise PullPushError(f"empty group {empty[0]!r}: it has a weight and no clip; {found}")
    if lost := [name for name in sizes if name not in weights]:
        raise PullPushError(f"no weight for group {lost[0]!r}: give it one, 0 to leave its clips out; {found}")
    exact = np.array([weights[name] for name in sizes], dtype=float)
    exact *= total / exact.sum()
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1  # the largest remainders
    for name, count in zip(sizes, counts, strict=True):
        if weights[name] and not count:
            raise PullPushError(f"the weight of group {name!r} gives it no clip of {total}: enlarge it; {found}")
    return dict(zip(sizes, counts.tolist(), strict=True))


def _taken(rows: np.ndarray, count: int, key: tuple[int, int], epoch: int) -> np.ndarray:
    """Clips number epoch · count and on of a group's passes put end to end."""
    first, last = epoch * count // len(rows), ((epoch + 1) * count - 1) // len(rows)
    passes = [np.random.default_rng([*key, number]).permutation(rows) for number in range(first, last + 1)]
    start = epoch * count - first * len(rows)
    return np.concatenate(passes)[start : start + count]


class TrainingData(Protocol):
    """What `training.train` learns from: batches of pairs; sample_rate: in Hz, None as it comes; `train` sets it."""

    sample_rate: int | None

    @property
    def languages(self) -> tuple[str, ...]:
        """ISO 639-3 codes; the first is the main one."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Of groups in every batch, by name; empty: pairs as they come."""

    @property
    def offered(self) -> Mapping[str, Sequence[Any]]:
        """What else is known of the clips, by column."""

    def bring(self, columns: Sequence[str]) -> None:
        """Put these columns into batches from now on; `UnknownNameError` where there are none of that name."""

    def __len__(self) -> int:
        """Pairs of an epoch."""

    def steps(self, batch_size: int, *, processes: int = 1) -> int:
        """Batches of an epoch, the same for every epoch."""

    def batches(
        self, batch_size: int, *, seed: int, epoch: int, skip: int = 0, rank: int = 0, processes: int = 1
    ) -> Iterable[Batch]:
        """One process's share of every batch of an epoch, but for the first `skip` batches.

        They depend on (seed, epoch) alone: put together in order of rank, the shares of all processes are the batch
        that one process would have seen. batch_size: over all processes together; the last batch may be smaller, but no
        share is empty. `PullPushError` where there would be no batch at all.
        """


class PairDataset:
    """Clips with one caption each (or one per language), drawn anew every epoch; see `TrainingData`.

    Args:
        split: the clips.
        languages: ISO 639-3 codes; the first is the main one.
        sampling: "fixed": clip i keeps language i mod K in all epochs; "random": a random language per clip and epoch
            (ML-CLAP); "pair": the main language, and in `parallel` a random other one (CACL); "all": the main
            language, and in `parallel` all others in their order (KCL).
        captions: "first" takes each clip's first caption, "random" draws one per clip and epoch. Texts in
            `parallel` have the same caption number. "all" brings every caption of the clip in its one language, the
            first as its text and the others in `parallel`: a loss over many texts then learns from all of them.
        seed: of all draws, with the epoch and the clip's index.
        sample_rate: in Hz, of the audio; None: as the clips come. `train` asks for that of its model.
        columns: which of the clips' columns a batch brings; `train` asks for those that its recipe needs.
        weights: of the clips' groups (their column "group"), by name; every batch then has groups in this proportion,
            whatever their sizes. An epoch stays as many clips as there are, of a small group some more than once, of a
            large one some not at all (see `balanced_order`). Every group needs a weight, 0 leaves it out. Empty: each
            clip once, in random order.

    Missing translations: "fixed", "random" and "pair" choose among the languages that a clip has captions in, in their
    order; with "all" the text is None. A warning says how many there are, and so does `missing` (language → clips
    without a caption in it).

    Raises:
        UnknownNameError: an unknown language, sampling or caption choice.
        PullPushError: clips without a caption in any language, or, for "pair", in two; weights of clips that have no
            groups, or of other groups than they have (see `shares`).
    """

    def __init__(
        self,
        split: Clips,
        *,
        languages: Sequence[str] = ("eng",),
        sampling: str = "fixed",
        captions: str = "first",
        seed: int = 0,
        sample_rate: int | None = None,
        columns: Sequence[str] = (),
        weights: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        # pyrefly: ignore[bad-argument-type]
        self.split, self.pairing = split, Pairing(languages, sampling, captions, seed)
        self.sample_rate, self.epoch = sample_rate, 0
        self.bring(columns)
        self.weights, self._shares = dict(weights), None
        if weights:
            if GROUP not in self.offered:
                known = ", ".join(self.offered) or "none"
                raise PullPushError(f"weights of groups need clips with a column {GROUP!r}; these have: {known}")
            self._shares = shares(self.offered[GROUP], weights)
        self._captions = {language: present_captions(split, language) for language in self.languages}
        if captions == "all":
            every = (len(texts) for of_language in self._captions.values() for texts in of_language)
            self.pairing = replace(self.pairing, most=max(every, default=0))
        self._texts: dict[int, Texts] = {}
        self.missing = {language: sum(not texts for texts in self._captions[language]) for language in self.languages}
        if any(self.missing.values()):
            self._check_languages()

    def _check_languages(self) -> None:
        """Every clip has captions in as many languages as are needed; warns where some are missing."""
        needed = self.pairing.needed
        counts = [sum(bool(texts[index]) for texts in self._captions.values()) for index in range(len(self))]
        if poor := [index for index, count in enumerate(counts) if count < needed]:
            few = f"fewer than {needed} of {', '.join(self.languages)}"
            raise PullPushError(
                f"{len(poor)} of {len(self)} clips have captions in {few}, which sampling {self.pairing.sampling!r} "
                f"cannot use: leave out clips {poor[:5]}{'…' if poor[5:] else ''}"
            )
        lost = ", ".join(f"{language} {count}" for language, count in self.missing.items() if count)
        warnings.warn(f"missing captions (of {len(self)} clips): {lost}", stacklevel=3)

    @property
    def languages(self) -> tuple[str, ...]:
        return self.pairing.languages

    @property
    def offered(self) -> Mapping[str, Sequence[Any]]:
        return self.split.columns

    def bring(self, columns: Sequence[str]) -> None:
        for name in columns:  # of no columns nothing is asked of the clips
            check_known("column of the clips", name, self.offered)
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.split)

    def steps(self, batch_size: int, *, processes: int = 1) -> int:
        return len(self.order(batch_size, seed=self.pairing.seed, epoch=0, processes=processes))

    def batches(
        self,
        batch_size: int,
        *,
        seed: int,
        epoch: int,
        skip: int = 0,
        rank: int = 0,
        processes: int = 1,
        as_stored: bool = False,
    ) -> Iterator[Batch]:
        """Sets the epoch. as_stored: audio may be int16, where the clips have it so at this rate, until `Batch.to`."""
        rows = self.order(batch_size, seed=seed, epoch=epoch, processes=processes)[skip:]
        self.epoch = epoch
        return (self._drawn(shard(one, rank, processes), epoch, as_stored) for one in rows)

    def _drawn(self, rows: Sequence[int], epoch: int, as_stored: bool) -> Batch:
        self.epoch = epoch  # for each batch: those of another epoch may be drawn in between
        return self.batch(rows, as_stored=as_stored)

    def batch(self, rows: Sequence[int], *, as_stored: bool = False) -> Batch:
        """Some of the pairs, by the numbers of their clips: their audio comes in one call."""
        store: Any = getattr(self.split, "waveforms", None)
        if as_stored and type(store) is Waveforms and self.sample_rate in (None, store.sample_rate):
            audio, lengths = store.stored(self.split.rows[list(rows)])  # pyrefly: ignore[missing-attribute]
        else:
            audio, lengths = self.split.audio(list(rows), sample_rate=self.sample_rate)
        columns = {name: [self.offered[name][row] for row in rows] for name in self.columns}
        return _batch(audio, lengths, rows, map(self.texts, rows), columns)

    def order(self, batch_size: int, *, seed: int, epoch: int, processes: int = 1) -> list[list[int]]:
        """The clips of every step of an epoch, over all processes; the last batch may be short."""
        check_count("batch_size", batch_size)
        if not len(self):
            raise PullPushError("0 clips make no batch: use more clips")
        if self._shares:
            order = balanced_order(*self._shares, seed=seed, epoch=epoch)
        else:
            order = np.random.default_rng([seed, epoch]).permutation(len(self)).tolist()
        every = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        full = [rows for rows in every if len(rows) >= processes]  # every process needs a clip
        if not full:
            raise TrainingError(f"batches of {len(every[0])} clips are too small for {processes} processes")
        return full

    def __getitem__(self, index: int) -> Item:
        index = range(len(self))[index]  # negative numbers count from the end
        audio, lengths = self.split.audio([index], sample_rate=self.sample_rate)
        columns = {name: self.offered[name][index] for name in self.columns}
        return Item(index, audio[0, : int(lengths)], *self.texts(index), columns)

    def texts(self, index: int) -> Texts:
        if (found := self._texts.get(index)) is None:
            captions = {name: held[index] for name, held in self._captions.items()}
            found = self.pairing.texts(index, self.epoch, captions)
            if not self.pairing.draws:  # the same in every epoch
                self._texts[index] = found
        return found


def shard(rows: list[T], rank: int, processes: int) -> list[T]:
    """A process's share of a batch: consecutive rows, whose numbers differ by one at most between processes.

    >>> [shard([4, 7, 1, 5, 2], rank, 2) for rank in (0, 1)]
    [[4, 7], [1, 5, 2]]
    """
    bounds = [len(rows) * part // processes for part in (rank, rank + 1)]
    return rows[slice(*bounds)]

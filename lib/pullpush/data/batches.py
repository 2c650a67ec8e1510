"""From clips with captions to batches: which caption in which language each clip brings, in which order.

All draws depend on (seed, epoch, index) alone, so that a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from pullpush.data.clips import Clips
from pullpush.errors import PullPushError, unknown

SAMPLING = ("fixed", "random", "pair", "all")
CAPTIONS = ("first", "random")


class Item(NamedTuple):
    """One pair: waveform `(length,)` float32; `parallel` holds further texts for the same clip (see PairDataset).

    A text is None where the clip has none in that language.
    """

    index: int
    waveform: Tensor
    length: int
    text: str | None
    language: str
    parallel: tuple[str | None, ...] = ()
    parallel_languages: tuple[str, ...] = ()
    columns: Mapping[str, Any] = MappingProxyType({})
    """What else is known of the clip, by name."""


@dataclass(frozen=True)
class Batch:
    """Pairs, padded to the longest clip among them.

    audio: `(B, T)` float32, zero beyond each length; lengths: `(B,)` int64, samples; texts, languages: B strings;
    index: `(B,)` int64, the clips' numbers in their split; parallel, parallel_languages: K lists of B strings, further
    texts for the same clips (K = 0 unless the sampling is "pair" or "all"). A text that is None or blank is missing.
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

    @property
    def present(self) -> list[list[bool]]:
        """For the main and each parallel list of texts: which of them are not missing."""
        return [[not is_missing(text) for text in texts] for texts in (self.texts, *self.parallel)]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same batch with its tensors on `device`."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        columns = {name: move(held) if torch.is_tensor(held) else held for name, held in self.columns.items()}
        moved = {name: move(getattr(self, name)) for name in ("audio", "lengths", "index")}
        return replace(self, **moved, columns=columns)


class PairDataset(Dataset[Item]):
    """Clips with one caption each (or one per language), drawn anew every epoch.

    Args:
        split: the clips.
        languages: ISO 639-3 codes; the first is the main one.
        sampling: "fixed": clip i keeps language i mod K in all epochs; "random": a random language per clip and epoch
            (ML-CLAP); "pair": the main language, and in `parallel` a random other one (CACL); "all": the main
            language, and in `parallel` all others in their order (KCL).
        captions: "first" takes each clip's first caption, "random" draws one per clip and epoch. Texts in
            `parallel` have the same caption number.
        seed: of all draws, with the epoch and the clip's index.
        sample_rate: in Hz, of the audio; None: as the clips come. `train` asks for that of its model.
        columns: which of the clips' columns a batch brings; `train` asks for those that its recipe needs.

    Missing translations: "fixed", "random" and "pair" choose among the languages that a clip has captions in, in their
    order; with "all" the text is None. A warning says how many there are, and so do `missing` and `coverage`.

    Attributes:
        missing: language → number of clips without a caption in it.

    Raises:
        UnknownNameError: an unknown language, sampling or caption choice.
        PullPushError: clips without a caption in any language, or, for "pair", in two.
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
    ) -> None:
        if sampling not in SAMPLING:
            raise unknown("sampling", sampling, SAMPLING)
        if captions not in CAPTIONS:
            raise unknown("caption choice", captions, CAPTIONS)
        languages = (languages,) if isinstance(languages, str) else tuple(languages)
        if not languages or (sampling == "pair" and len(languages) < 2):
            raise ValueError(f"sampling {sampling!r} needs more languages than {languages}")
        self.split, self.languages, self.sampling, self.choice, self.seed = split, languages, sampling, captions, seed
        self.sample_rate, self.epoch = sample_rate, 0
        self.bring(columns)
        self._captions = {language: _without_blanks(split.captions(language)) for language in languages}
        self.missing = {language: sum(not texts for texts in self._captions[language]) for language in languages}
        self._spoken = self._languages_of_clips() if any(self.missing.values()) else None

    def _languages_of_clips(self) -> list[tuple[str, ...]]:
        """Each clip's languages, where some are missing; warns."""
        spoken = [tuple(name for name in self.languages if self._captions[name][i]) for i in range(len(self))]
        needed = 2 if self.sampling == "pair" else 1
        poor = [index for index, languages in enumerate(spoken) if len(languages) < needed]
        if poor:
            some = f"{poor[:5]}{'…' if poor[5:] else ''}"
            raise PullPushError(
                f"{len(poor)} of {len(self)} clips have captions in fewer than {needed} of "
                f"{', '.join(self.languages)}, which sampling {self.sampling!r} cannot use: leave out clips {some}"
            )
        counts = ", ".join(f"{language} {count}" for language, count in self.missing.items() if count)
        warnings.warn(f"missing captions (of {len(self)} clips): {counts}", stacklevel=3)
        return spoken

    def coverage(self) -> pd.DataFrame:
        """How many clips have captions in each language: columns language, clips, missing."""
        rows = [(language, len(self) - count, count) for language, count in self.missing.items()]
        return pd.DataFrame(rows, columns=["language", "clips", "missing"])

    @property
    def offered(self) -> Mapping[str, Sequence[Any]]:
        """The columns of the clips."""
        return self.split.columns

    def bring(self, columns: Sequence[str]) -> None:
        """Put these columns of the clips into batches from now on.

        Raises:
            UnknownNameError: the clips have no such column.
        """
        for name in columns:
            if name not in self.offered:
                raise unknown("column of the clips", name, self.offered)
        self.columns = tuple(columns)

    def set_epoch(self, epoch: int) -> None:
        """Draw languages and captions for this epoch from now on."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: int) -> Item:
        index = range(len(self))[index]  # negative numbers count from the end; others raise IndexError
        audio, lengths = self.split.audio(index, sample_rate=self.sample_rate)
        language, others, draw = self._draw(index)
        return Item(
            index,
            audio[0],
            int(lengths[0]),
            self._text(index, language, draw),
            language,
            tuple(self._text(index, other, draw) for other in others),
            others,
            {name: self.offered[name][index] for name in self.columns},
        )

    def _draw(self, index: int) -> tuple[str, tuple[str, ...], int]:
        """The clip's language in this epoch, its parallel languages, and a number that picks the caption."""
        pick, draw = self._numbers(index)
        languages = self.languages if self._spoken is None or self.sampling == "all" else self._spoken[index]
        main, *others = languages
        if self.sampling == "pair":
            return main, (others[pick % len(others)],), draw
        if self.sampling == "all":
            return main, tuple(others), draw
        number = index if self.sampling == "fixed" else pick
        return languages[number % len(languages)], (), draw

    def _numbers(self, index: int) -> tuple[int, int]:
        """Random numbers for the clip's language and caption; zeros where nothing is drawn, which is much faster."""
        if self.choice == "first" and self.sampling in ("fixed", "all"):
            return 0, 0
        rng = np.random.default_rng([self.seed, self.epoch, index])
        return int(rng.integers(2**31)), int(rng.integers(2**31))

    def _text(self, index: int, language: str, draw: int) -> str | None:
        texts = self._captions[language][index]
        if not texts:
            return None
        return texts[0 if self.choice == "first" else draw % len(texts)]


def is_missing(text: str | None) -> bool:
    """Whether a text is None or blank."""
    return text is None or not text.strip()


def _without_blanks(captions: list[list[str]]) -> list[list[str]]:
    """The captions of every clip that are not missing; the list itself if all are there."""
    if not any(is_missing(text) for texts in captions for text in texts):
        return captions
    return [[text for text in texts if not is_missing(text)] for texts in captions]


def collate(items: Sequence[Item]) -> Batch:
    """Items to a batch, padded with zeros to the longest clip; one item is enough."""
    if not items:
        raise ValueError("collate needs at least one item")
    return Batch(
        audio=pad_sequence([item.waveform for item in items], batch_first=True),
        lengths=torch.tensor([item.length for item in items], dtype=torch.int64),
        texts=[item.text for item in items],
        languages=[item.language for item in items],
        index=torch.tensor([item.index for item in items], dtype=torch.int64),
        parallel=tuple(map(list, zip(*[item.parallel for item in items], strict=True))),
        parallel_languages=tuple(map(list, zip(*[item.parallel_languages for item in items], strict=True))),
        columns={name: _stacked([item.columns[name] for item in items]) for name in items[0].columns},
    )


def _stacked(values: list[Any]) -> Tensor | list[Any]:
    """Numbers and arrays as a tensor, anything else as the list that it is."""
    stacked = np.stack([np.asarray(value) for value in values])
    return torch.from_numpy(stacked) if stacked.dtype.kind in "biuf" else values


def loader(
    dataset: PairDataset,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    drop_last: bool = False,
) -> DataLoader:
    """Batches of `dataset` in an order that depends on (seed, epoch) alone; sets the dataset's epoch.

    Every pass over one loader gives the same batches; make another loader for the next epoch.

    Raises:
        PullPushError: there would be no batch at all.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if len(dataset) < (batch_size if drop_last else 1):
        raise PullPushError(
            f"{len(dataset)} clips make no batch of {batch_size}: use more clips, a smaller batch_size "
            "or drop_last=False"
        )
    dataset.set_epoch(epoch)
    order = list(range(len(dataset)))
    if shuffle:
        order = np.random.default_rng([seed, epoch]).permutation(len(dataset)).tolist()
    return DataLoader(dataset, batch_size, sampler=order, collate_fn=collate, drop_last=drop_last)

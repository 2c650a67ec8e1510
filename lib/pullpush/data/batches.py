"""From clips with captions to batches: which caption in which language each clip brings, in which order.

All draws depend on (seed, epoch, index) alone, so that a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from pullpush.errors import PullPushError, unknown

SAMPLING = ("fixed", "random", "pair", "all")
CAPTIONS = ("first", "random")


class Clips(Protocol):
    """What a source of pairs offers: a `Split` of a world and `FolderCaptions` both do."""

    def __len__(self) -> int: ...

    def audio(self, index: int | Sequence[int]) -> tuple[Tensor, Tensor]:
        """`(B, T)` float32 and true lengths `(B,)` int64 in samples."""

    def captions(self, language: str) -> list[list[str]]:
        """The captions of every clip."""


class Item(NamedTuple):
    """One pair: waveform `(length,)` float32; `parallel` holds further texts for the same clip (see PairDataset)."""

    index: int
    waveform: Tensor
    length: int
    text: str
    language: str
    parallel: tuple[str, ...] = ()
    parallel_languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Batch:
    """Pairs, padded to the longest clip among them.

    audio: `(B, T)` float32, zero beyond each length; lengths: `(B,)` int64, samples; texts, languages: B strings;
    index: `(B,)` int64, the clips' numbers in their split; parallel, parallel_languages: K lists of B strings, further
    texts for the same clips (K = 0 unless the sampling is "pair" or "all").
    """

    audio: Tensor
    lengths: Tensor
    texts: list[str]
    languages: list[str]
    index: Tensor
    parallel: tuple[list[str], ...] = ()
    parallel_languages: tuple[list[str], ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same batch with its tensors on `device`."""
        moved = {
            name: getattr(self, name).to(device, non_blocking=non_blocking) for name in ("audio", "lengths", "index")
        }
        return replace(self, **moved)


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

    Raises:
        UnknownNameError: an unknown language, sampling or caption choice.
    """

    def __init__(
        self,
        split: Clips,
        *,
        languages: Sequence[str] = ("eng",),
        sampling: str = "fixed",
        captions: str = "first",
        seed: int = 0,
    ) -> None:
        if sampling not in SAMPLING:
            raise unknown("sampling", sampling, SAMPLING)
        if captions not in CAPTIONS:
            raise unknown("caption choice", captions, CAPTIONS)
        languages = (languages,) if isinstance(languages, str) else tuple(languages)
        if not languages or (sampling == "pair" and len(languages) < 2):
            raise ValueError(f"sampling {sampling!r} needs more languages than {languages}")
        self.split, self.languages, self.sampling, self.choice, self.seed = split, languages, sampling, captions, seed
        self.epoch = 0
        self._captions = {language: split.captions(language) for language in languages}

    def set_epoch(self, epoch: int) -> None:
        """Draw languages and captions for this epoch from now on."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: int) -> Item:
        index = range(len(self))[index]  # negative numbers count from the end; others raise IndexError
        audio, lengths = self.split.audio(index)
        language, others, draw = self._draw(index)
        return Item(
            index,
            audio[0],
            int(lengths[0]),
            self._text(index, language, draw),
            language,
            tuple(self._text(index, other, draw) for other in others),
            others,
        )

    def _draw(self, index: int) -> tuple[str, tuple[str, ...], int]:
        """The clip's language in this epoch, its parallel languages, and a number that picks the caption."""
        pick, draw = self._numbers(index)
        main, *others = self.languages
        if self.sampling == "pair":
            return main, (others[pick % len(others)],), draw
        if self.sampling == "all":
            return main, tuple(others), draw
        number = index if self.sampling == "fixed" else pick
        return self.languages[number % len(self.languages)], (), draw

    def _numbers(self, index: int) -> tuple[int, int]:
        """Random numbers for the clip's language and caption; zeros where nothing is drawn, which is much faster."""
        if self.choice == "first" and self.sampling in ("fixed", "all"):
            return 0, 0
        rng = np.random.default_rng([self.seed, self.epoch, index])
        return int(rng.integers(2**31)), int(rng.integers(2**31))

    def _text(self, index: int, language: str, draw: int) -> str:
        texts = self._captions[language][index]
        return texts[0 if self.choice == "first" else draw % len(texts)]


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
    )


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

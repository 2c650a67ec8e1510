"""Pairs: which of a clip's languages and captions an epoch takes, by draws of (seed, epoch, clip) alone.

Items of a clip with its texts stand side by side in batches, padded with silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pullpush.errors import unknown

SAMPLING = ("fixed", "random", "pair", "all")
CAPTIONS = ("first", "random")


class Texts(NamedTuple):
    """What goes with a clip: its main text, further ones, and their languages; None where there is no caption."""

    text: str | None
    language: str
    parallel: tuple[str | None, ...]
    parallel_languages: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    """How clips are paired with captions; what each of these means is in `PairDataset`.

    >>> pairing = Pairing(("eng", "fra"), sampling="all")
    >>> pairing.texts(0, 0, {"eng": ["a dog", "a hound"], "fra": []})
    Texts(text='a dog', language='eng', parallel=(None,), parallel_languages=('fra',))
    """

    languages: tuple[str, ...]
    sampling: str = "fixed"
    captions: str = "first"
    seed: int = 0

    def __post_init__(self) -> None:
        languages = (self.languages,) if isinstance(self.languages, str) else tuple(self.languages)
        object.__setattr__(self, "languages", languages)
        if self.sampling not in SAMPLING:
            raise unknown("sampling", self.sampling, SAMPLING)
        if self.captions not in CAPTIONS:
            raise unknown("caption choice", self.captions, CAPTIONS)
        if len(languages) < self.needed:
            raise ValueError(f"sampling {self.sampling!r} needs more languages than {languages}")

    @property
    def needed(self) -> int:
        """In how many languages a clip must have captions."""
        return 2 if self.sampling == "pair" else 1

    def texts(self, clip: int, epoch: int, captions: Mapping[str, Sequence[str]]) -> Texts:
        """A clip's texts in an epoch.

        clip: its number; captions: by language, none of them blank, in as many languages as are needed.
        """
        spoken = tuple(name for name in self.languages if self.sampling == "all" or captions[name])
        pick, draw = self._numbers(clip, epoch)
        main, others = spoken[0], spoken[1:] if self.sampling == "all" else ()
        if self.sampling == "pair":
            others = (spoken[1 + pick % (len(spoken) - 1)],)
        elif self.sampling != "all":
            main = spoken[(clip if self.sampling == "fixed" else pick) % len(spoken)]
        text, *parallel = (self._chosen(captions[name], draw) for name in (main, *others))
        return Texts(text, main, tuple(parallel), others)

    def _numbers(self, clip: int, epoch: int) -> tuple[int, int]:
        """Random numbers for the clip's language and caption; zeros where nothing is drawn, which is much faster."""
        if self.captions == "first" and self.sampling in ("fixed", "all"):
            return 0, 0
        rng = np.random.default_rng([self.seed, epoch, clip])
        return int(rng.integers(2**31)), int(rng.integers(2**31))

    def _chosen(self, texts: Sequence[str], draw: int) -> str | None:
        if not texts:
            return None
        return texts[0 if self.captions == "first" else draw % len(texts)]


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


def is_missing(text: str | None) -> bool:
    """Whether a text is None or blank."""
    return text is None or not text.strip()


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
    """Numbers and arrays as a tensor, anything else as the list that it is, lists that differ in length too."""
    try:
        stacked = np.stack([np.asarray(value) for value in values])
    except ValueError:
        return values
    return torch.from_numpy(stacked) if stacked.dtype.kind in "biuf" else values

"""Probes of what is kept of clips: soft labels of teachers, features over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import Clips, Columns, StoredClips
from pullpush.data.store import Waveforms, to_int16
from pullpush.encoders.interface import AudioEncoder, Model
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.studies import counting as costs
from pullpush.studies.distill import teachers as distillation
from pullpush.studies.glap.seconds import over_clips
from pullpush.studies.together import taught

SIZES = (4000, 9100, 16_000, 12_345)  # samples of the clips
TOLD = (("a frog croaks", "frogs"), ("rain", "rain falls on a roof"), ("a bell", "a bell rings"), ("wind", "it blows"))
DIM = 4


class Toy(Model):
    """Of a clip its level in each quarter, of a text how often it holds some letters; both of unit length."""

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """See `Model`."""
        return F.normalize(Levels()(audio, lengths), dim=1)

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """See `Model`."""
        counts = [[1.0 + text.count(letter) for letter in "aeir"] for text in texts]
        return F.normalize(torch.tensor(counts), dim=1)


class Levels(AudioEncoder):
    """The level of each quarter of a clip."""

    dim = DIM

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """See `AudioEncoder`."""
        sizes = [audio.shape[1]] * len(audio) if lengths is None else lengths.tolist()
        quarters = [row[:size].tensor_split(DIM) for row, size in zip(audio, sizes, strict=True)]
        return torch.stack([torch.stack([part.square().mean().sqrt() for part in parts]) for parts in quarters])


@dataclass(frozen=True)
class Asked:
    """A teacher that is a model; see `distillation.Teacher`."""

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See `Teacher`."""
        return distillation.both_sides(Toy(), clips, language)


def clips() -> StoredClips:
    """Four noises that grow louder, each in its own way, with two captions each."""
    waves = [
        0.1 * np.linspace(1, 2 + place, size) * numbers(size, seed=place).numpy() for place, size in enumerate(SIZES)
    ]
    samples = np.concatenate([to_int16(wave.clip(-1, 1)) for wave in waves])
    names = [f"{place}.wav" for place in range(len(SIZES))]
    return StoredClips(
        "probe", "probe", Waveforms(samples, np.cumsum(SIZES)), np.arange(len(SIZES)), {"file": names}, _captions
    )


def soft_labels() -> Values:
    """What three kinds of teachers say of clips, and the similarities that come of it."""
    kinds: tuple[Any, ...] = (Asked(), distillation.Truth(), distillation.Blind(dim=3, seed=2))
    labels = distillation.said(kinds, clips(), "eng")
    return {
        "of a model": torch.from_numpy(labels[:, 0]).float(),
        "of the others": torch.from_numpy(labels[:, 1:]).float(),
        "similarities": distillation.similarities(labels),
    }


def teachers() -> Values:
    """What a model makes of clips and of the mean direction of their captions."""
    return {"both sides": torch.from_numpy(taught.both_sides(Toy(), clips()))}


def windows() -> Values:
    """Features over windows of clips that are longer and shorter than these."""
    found = {f"{seconds} s": over_clips(Levels(), clips(), seconds) for seconds in (0.1, 0.3, 0.7)}
    return {name: torch.cat([torch.from_numpy(rows[:2]).flatten(), seen(rows)]) for name, rows in found.items()}


def counting() -> Values:
    """What small layers compute and keep: products, a convolution in groups, attention, frozen weights."""
    layer, rows = nn.Linear(6, 4), torch.ones(3, 6)
    frozen = nn.Linear(6, 4).requires_grad_(False)
    convolution, clip = nn.Conv1d(4, 8, 3, groups=2), torch.ones(2, 4, 9, requires_grad=True)
    heads = torch.ones(1, 2, 5, 8, requires_grad=True)
    return {
        "products": list(costs.cost(layer, lambda: layer(rows).tanh())),
        "frozen": list(costs.cost(frozen, lambda: frozen(rows))),
        "convolution": list(costs.cost(convolution, lambda: convolution(clip))),
        "attention": list(costs.cost(layer, lambda: F.scaled_dot_product_attention(heads, heads, heads))),
    }


def _captions(columns: Columns, language: str) -> list[list[str]]:
    return [list(TOLD[int(name[0])]) for name in columns["file"]]

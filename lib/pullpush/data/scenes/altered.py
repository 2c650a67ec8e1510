"""The same clips heard otherwise: cut, quieter, in noise. What is known of them stays as it is.

    altered(world.test, First(0.5))          # half a second from the start
    altered(world.test, Loudest(0.5))        # the half second with most energy
    altered(world.test, Gain(-20))           # 20 dB quieter
    altered(world.test, WhiteNoise(0))       # with white noise as strong as the clip

A new alteration is a frozen dataclass with the methods of `Alteration`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.checks import check_number
from pullpush.data.audio import SAMPLE_RATE, loudest
from pullpush.data.clips import StoredClips
from pullpush.data.store import Waveforms
from pullpush.golden import rounded, versions

NOISE = 16_000  # samples that tell what a reader's own alteration does


class Alteration(Protocol):
    """What is done to a clip; a frozen dataclass, whose fields name it in caches."""

    def __call__(self, wave: Tensor, sample_rate: int, row: int) -> Tensor:
        """`(T,)` float32 at a rate in Hz → `(T',)`; row: the clip's number in its store, to draw by."""

    def samples(self, length: int, sample_rate: int) -> int:
        """T' of T: as long as it was, unless an alteration says otherwise."""
        return length


@dataclass(frozen=True)
class First:
    """The first seconds; shorter clips stay as they are."""

    seconds: float

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, above=0)

    def __call__(self, wave: Tensor, sample_rate: int, row: int) -> Tensor:
        return wave[: self.samples(len(wave), sample_rate)]

    def samples(self, length: int, sample_rate: int) -> int:
        return min(length, max(1, round(self.seconds * sample_rate)))


@dataclass(frozen=True)
class Loudest(First):
    """The seconds with most energy, the first of several; shorter clips stay as they are."""

    def __call__(self, wave: Tensor, sample_rate: int, row: int) -> Tensor:
        return loudest(wave, self.samples(len(wave), sample_rate))


@dataclass(frozen=True)
class Gain(Alteration):
    """Louder or quieter, in decibels. Samples are not rounded to 16 bits again: nothing is lost but level."""

    decibels: float

    def __call__(self, wave: Tensor, sample_rate: int, row: int) -> Tensor:
        return wave * 10 ** (self.decibels / 20)


@dataclass(frozen=True)
class WhiteNoise(Alteration):
    """White noise at a ratio of the clip's power to the noise's, in decibels; of silence nothing is made.

    The noise of a clip is drawn by its number and the seed, and then scaled to the very power asked for.
    """

    decibels: float
    seed: int = 0

    def __call__(self, wave: Tensor, sample_rate: int, row: int) -> Tensor:
        drawn = np.random.default_rng([self.seed, row]).standard_normal(len(wave), dtype=np.float32)
        noise = torch.from_numpy(drawn)
        wanted = wave.double().square().mean() / 10 ** (self.decibels / 10)
        return wave + noise * (wanted / noise.double().square().mean()).sqrt().float()


@dataclass(frozen=True, eq=False)
class AlteredWaveforms(Waveforms):
    """A store whose recordings are altered when they are read, before they are resampled."""

    alteration: Any = field(kw_only=True)  # see Alteration; Any, since the fields before it have defaults

    @property
    def lengths(self) -> np.ndarray:
        return np.array([self.alteration.samples(int(each), self.sample_rate) for each in super().lengths], np.int64)

    def wave(self, row: int) -> Tensor:
        return self.alteration(super().wave(row), self.sample_rate, row)


def altered(clips: StoredClips, alteration: Alteration) -> StoredClips:
    """The same clips, heard otherwise: captions, labels and columns are the clips' own."""
    if not isinstance(clips, StoredClips):
        raise TypeError(f"altered takes clips of a store, got {type(clips).__name__}: alter them before encoding them")
    waves = clips.waveforms
    if isinstance(waves, AlteredWaveforms):
        raise ValueError(f"these clips are altered already, by {waves.alteration}: alter those that they were made of")
    store = AlteredWaveforms(waves.samples, waves.stops, waves.sample_rate, alteration=alteration)
    made_by: list[Any] = [alteration]
    if type(alteration).__module__ != __name__:  # one of the reader's own: its fields, and what it makes of some noise
        noise = torch.from_numpy(0.1 * np.random.default_rng(0).standard_normal(NOISE, dtype=np.float32))
        made_by.append(rounded({"made": alteration(noise, SAMPLE_RATE, 0)}))
    key = content_key([clips.key, versions("data/altered"), *made_by])
    return replace(clips, key=key, waveforms=store)

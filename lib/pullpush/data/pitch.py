"""Every recording of a bank at every pitch that scenes may ask for, resampled once and memory-mapped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import resample_poly

from pullpush.cache import cached_dir, content_key
from pullpush.golden import versions

if TYPE_CHECKING:
    from pullpush.data.bank import Bank


@dataclass(frozen=True)
class PitchBank:
    """Shifted recordings, end to end.

    samples: `(total,)` float32 at 16 kHz, memory-mapped; bounds: `(recordings, 2 * most + 1, 2)` int64, first and
    last-plus-one sample of each recording at each shift from -most to most; first: `(events,)` int64, the row of
    each event's first recording.
    """

    samples: np.ndarray
    bounds: np.ndarray
    first: np.ndarray
    most: int

    def clip(self, event: int, clip: int, semitones: int) -> np.ndarray:
        """One recording at one shift, `(T,)` float32, read-only."""
        start, stop = self.bounds[self.first[event] + clip, semitones + self.most]
        return self.samples[start:stop]


def ratio(semitones: int) -> Fraction:
    """Speed factor of a shift as a fraction: 2^(semitones / 12) within 0.2 cents up to an octave.

    >>> float(ratio(12))
    2.0
    """
    return Fraction(2 ** (semitones / 12)).limit_denominator(200)


def pitch_bank(bank: Bank, most: int) -> PitchBank:
    """The bank at all shifts from -`most` to `most` semitones: made once, then read from the cache.

    A shift changes speed with pitch, as a tape does, so that a recording up a semitone is 6 % shorter.

    Raises:
        CacheError: the cache cannot be written.
    """
    key = content_key([versions("data/pitch"), bank.key, most])
    folder = cached_dir("pitch", key, lambda path: _write(path, shifted(bank, most)))
    return _open(folder, most)


def shifted(bank: Bank, most: int) -> PitchBank:
    """The same in memory: every recording resampled to every shift.

    >>> from pullpush.data.banks import create_bank
    >>> shifted(create_bank("synthetic:sweep"), 1).bounds.shape
    (6, 3, 2)
    """
    waves = [
        shift(clip.numpy(), semitones) for clips in bank.clips for clip in clips for semitones in range(-most, most + 1)
    ]
    stops = np.cumsum([len(wave) for wave in waves], dtype=np.int64)
    starts = np.concatenate([[0], stops[:-1]])
    counts = [len(clips) for clips in bank.clips]
    bounds = np.stack([starts, stops], axis=-1).reshape(sum(counts), 2 * most + 1, 2)
    return PitchBank(np.concatenate(waves), bounds, np.cumsum([0, *counts[:-1]], dtype=np.int64), most)


@lru_cache(maxsize=4)
def _open(folder: Path, most: int) -> PitchBank:
    """Map the folder's arrays, once a process."""
    samples = np.load(folder / "samples.npy", mmap_mode="r")
    return PitchBank(samples, np.load(folder / "bounds.npy"), np.load(folder / "first.npy"), most)


def _write(folder: Path, pitches: PitchBank) -> None:
    """Write the three arrays."""
    for name in ("samples", "bounds", "first"):
        np.save(folder / f"{name}.npy", getattr(pitches, name))


def shift(wave: np.ndarray, semitones: int) -> np.ndarray:
    """`wave` `(T,)` float32 played faster (up) or slower (down) by `semitones`: `(~T / 2^(semitones/12),)`."""
    if semitones == 0:
        return wave.astype(np.float32)
    speed = ratio(semitones)
    return resample_poly(wave, speed.denominator, speed.numerator).astype(np.float32)

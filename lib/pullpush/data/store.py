"""Waveforms of different lengths in one memory-mapped file: int16, one after the other.

A folder of the cache holds `samples.i16` and `stops.npy`, where each recording ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torchaudio.functional import resample

from pullpush.data.audio import SAMPLE_RATE

FULL_SCALE = 32767  # of int16


@dataclass(frozen=True, eq=False)
class Waveforms:
    """Recordings in one array.

    samples: all of them, int16, memory-mapped; stops: `(N,)` int64, where each ends; sample_rate: in Hz.

    >>> Waveforms(np.array([0, 16384, 32767], np.int16), np.array([1, 3]))[1]
    array([16384, 32767], dtype=int16)
    """

    samples: np.ndarray
    stops: np.ndarray
    sample_rate: int = SAMPLE_RATE

    def __len__(self) -> int:
        return len(self.stops)

    @property
    def lengths(self) -> np.ndarray:
        """`(N,)` int64, in samples."""
        return np.diff(self.stops, prepend=0)

    def __getitem__(self, row: int) -> np.ndarray:
        """One recording, `(T,)` int16."""
        return self.samples[self.stops[row - 1] if row else 0 : self.stops[row]]

    def audio(self, rows: Iterable[int], *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some recordings.

        Args:
            rows: their numbers, from 0.
            sample_rate: in Hz, resampled to where it is another than the store's; default: the store's.

        Returns:
            `(B, T)` float32 in [-1, 1], zero beyond each length, and the lengths `(B,)` int64 in samples.
        """
        waves = [torch.from_numpy(self[row].astype(np.float32) / FULL_SCALE) for row in rows]
        if sample_rate not in (None, self.sample_rate):
            waves = [resample(wave, self.sample_rate, sample_rate) for wave in waves]
        lengths = torch.tensor([len(wave) for wave in waves], dtype=torch.int64)
        return (pad_sequence(waves, batch_first=True) if waves else torch.zeros(0, 0)), lengths


def to_int16(wave: np.ndarray) -> np.ndarray:
    """Samples in [-1, 1] as stores keep them.

    >>> to_int16(np.array([-1.0, 0.0, 0.5]))
    array([-32767,      0,  16384], dtype=int16)
    """
    return np.round(wave * FULL_SCALE).astype("<i2")


def write(folder: Path, waves: Iterable[np.ndarray]) -> None:
    """Write recordings, each `(T,)` int16, to a folder, in their order.

    With plain writes rather than a writable memory map, in which a full disk would kill the process.
    """
    lengths = []
    with open(folder / "samples.i16", "wb") as file:
        for wave in waves:
            file.write(wave.tobytes())
            lengths.append(len(wave))
    np.save(folder / "stops.npy", np.cumsum(lengths, dtype=np.int64))


def read(folder: Path, *, sample_rate: int = SAMPLE_RATE) -> Waveforms:
    """The recordings that `write` wrote; sample_rate: what they were written in."""
    samples = np.memmap(folder / "samples.i16", dtype="<i2", mode="r")
    return Waveforms(samples, np.load(folder / "stops.npy"), sample_rate)


def row_numbers(index: int | Sequence[int] | Tensor | slice, count: int) -> np.ndarray:
    """Which of `count` rows an index means, `(B,)` int64; negative numbers count from the end.

    Raises:
        IndexError: there is no such row.

    >>> row_numbers(-1, 10), row_numbers(slice(0, 3), 10)
    (array([9]), array([0, 1, 2]))
    """
    if isinstance(index, int):
        return np.array([range(count)[index]])
    return np.atleast_1d(np.arange(count)[index if isinstance(index, slice) else np.asarray(index, dtype=int)])

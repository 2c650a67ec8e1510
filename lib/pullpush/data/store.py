"""Waveforms of different lengths in one memory-mapped file: int16, one after the other.

A folder of the cache holds `samples.i16` and `stops.npy`, where each recording ends. Recordings on disk are decoded
into one once, and again when a file was changed, which its time tells, or its size, beginning or end.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torchaudio.functional import resample
from tqdm.auto import tqdm

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.audio import SAMPLE_RATE, load_audio
from pullpush.golden import versions
from pullpush.progress import hidden

T = TypeVar("T")
FULL_SCALE = 32767  # of int16
KIND = "recordings"
BLOCK = 64  # recordings that a thread makes at a time
EDGE = 4096  # bytes at either end of a file that tell it from another of its size


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

    def wave(self, row: int) -> Tensor:
        """One recording, `(T,)` float32 in [-1, 1]."""
        return torch.from_numpy(self[row].astype(np.float32) / FULL_SCALE)

    def audio(self, rows: Iterable[int], *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some recordings, resampled to `sample_rate` Hz: `(B, T)` float32 in [-1, 1], zero beyond each length, and the
        lengths `(B,)` int64 in samples.
        """
        waves = [self.wave(int(row)) for row in rows]
        if sample_rate not in (None, self.sample_rate):
            waves = [resample(wave, self.sample_rate, sample_rate) for wave in waves]
        return padded(waves)

    def stored(self, rows: Iterable[int]) -> tuple[Tensor, Tensor]:
        """`audio` as it is stored, int16: half as much to copy."""
        return padded([torch.from_numpy(self[int(row)].copy()) for row in rows])


def padded(waves: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Waveforms `(T,)` as `(B, T)`, zero beyond each length, and the lengths `(B,)` int64."""
    lengths = torch.tensor([len(wave) for wave in waves], dtype=torch.int64)
    return (pad_sequence(waves, batch_first=True) if waves else torch.zeros(0, 0)), lengths


def to_float(samples: Tensor) -> Tensor:
    """Stored samples in [-1, 1], float32, the same numbers on every device (a GPU multiplies by 1/x for a plain x)."""
    return samples / torch.full((), float(FULL_SCALE), device=samples.device)


def to_int16(wave: np.ndarray) -> np.ndarray:
    """Samples in [-1, 1] as stores keep them."""
    return np.round(wave * FULL_SCALE).astype("<i2")


def write(folder: Path, waves: Iterable[np.ndarray]) -> None:
    """Write recordings, each `(T,)` int16, to a folder, in their order; with plain writes rather than a writable memory
    map, in which a full disk would kill the process.
    """
    lengths = []
    with open(folder / "samples.i16", "wb") as file:
        for wave in waves:
            file.write(wave.tobytes())
            lengths.append(len(wave))
    np.save(folder / "stops.npy", np.cumsum(lengths, dtype=np.int64))


def read(folder: Path, *, sample_rate: int = SAMPLE_RATE) -> Waveforms:
    samples = np.memmap(folder / "samples.i16", dtype="<i2", mode="r")
    return Waveforms(samples, np.load(folder / "stops.npy"), sample_rate)


def cached(
    kind: str, key: str, waves: Callable[[], Iterable[np.ndarray]], sample_rate: int = SAMPLE_RATE
) -> tuple[Waveforms, str]:
    """Recordings of an entry of the cache, made by `waves` if they are not there, and a name for their bytes."""
    folder = cached_dir(kind, key, lambda folder: write(folder, waves()))
    return read(folder, sample_rate=sample_rate), bytes_key(folder)


def row_numbers(index: int | Sequence[int] | Tensor | slice, count: int) -> np.ndarray:
    """Which of `count` rows an index or a mask means, `(B,)` int64; negative numbers count from the end."""
    rows = index if isinstance(index, slice) else np.asarray(index)
    return np.atleast_1d(np.arange(count)[rows if isinstance(rows, slice) or rows.size else []])


def stored(
    paths: Sequence[Path], about: Sequence[Any], seconds: float | None, sample_rate: int, title: str
) -> tuple[Waveforms, str]:
    """Recordings of any format, rate and number of channels from the cache, decoded first if they are not there, and
    the key of what the store holds: of its bytes, their rate and the recordings' names.

    about: what else names the entry of the cache; seconds: longer recordings are cut to this; None keeps all;
    sample_rate: in Hz, that they are resampled to; title: what a bar of progress says.
    """
    names, prints = [path.name for path in paths], [[path.stat().st_mtime_ns, fingerprint(path)] for path in paths]
    key = content_key([versions("data/decoding"), *about, seconds, sample_rate, names, prints])
    decode = partial(_decoded, seconds=seconds, sample_rate=sample_rate)
    waveforms, content = cached(KIND, key, lambda: made(decode, paths, f"decoding {title}"), sample_rate)
    return waveforms, content_key([content, sample_rate, names])


def fingerprint(path: Path) -> str:
    """Tells a file from another version of it, without reading all of it: its size, its beginning and its end."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        digest.update(file.read(EDGE))
        file.seek(max(0, size - EDGE))
        digest.update(file.read(EDGE))
    return digest.hexdigest()


def made(make: Callable[[T], np.ndarray], items: Sequence[T], title: str) -> Iterator[np.ndarray]:
    """`make` of each item, in their order, for `write`; threads suffice, as decoders and transforms release the GIL."""
    parallel = joblib.Parallel(
        n_jobs=joblib.cpu_count(), prefer="threads", return_as="generator", batch_size=min(BLOCK, len(items) or 1)
    )
    waves = parallel(joblib.delayed(make)(item) for item in items)
    yield from tqdm(waves, total=len(items), desc=title, unit="clip", disable=hidden())


def _decoded(path: Path, seconds: float | None, sample_rate: int) -> np.ndarray:
    wave = load_audio(path, sample_rate=sample_rate, seconds=seconds)
    return to_int16(wave.clamp(-1, 1).numpy())  # clamped, since resampling may pass full scale

"""Waveforms of different lengths in one memory-mapped file: int16, one after the other.

A folder of the cache holds `samples.i16` and `stops.npy`, where each recording ends. Recordings on disk are decoded
into one once; stores are named by size, beginning and end of a file alone, so those that were edited since in between
are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torchaudio.functional import resample
from tqdm.auto import tqdm

from pullpush.cache import atomic_path, bytes_key, cached_dir, cached_file, content_key
from pullpush.data.audio import SAMPLE_RATE, load_audio
from pullpush.errors import AudioError, CacheError
from pullpush.golden import versions
from pullpush.progress import hidden

FULL_SCALE = 32767  # of int16
EDITED = "edits"
KIND = "recordings"
BLOCK = 64  # recordings that a thread decodes at a time
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


def check_unedited(paths: Sequence[Path], key: str) -> None:
    """Refuse recordings that are not what they were when the store `key` was first read, though they look like it.

    Each is read as a whole once, and again when its time has changed.

    Raises:
        AudioError: one was edited in its middle; it is named.
        CacheError: the cache cannot be written.
    """

    def build(place: Path) -> None:
        place.write_text(json.dumps([[path.stat().st_mtime_ns, _sum(path)] for path in paths]), encoding="utf-8")

    ledger = cached_file(EDITED, f"{key}.json", build)
    known = json.loads(ledger.read_text(encoding="utf-8"))
    changed = False
    for number, (path, (time, before)) in enumerate(zip(paths, known, strict=True)):
        now = path.stat().st_mtime_ns
        if now == time:
            continue
        if _sum(path) != before:
            raise AudioError(
                f"{path} was edited, and has the size, beginning and end that it had: what was computed from it is "
                "kept under these. Save it under another name, and write that into its rows"
            )
        known[number][0], changed = now, True
    if changed:
        with suppress(CacheError), atomic_path(ledger) as place:  # on a read-only disk it is read again next time
            place.write_text(json.dumps(known), encoding="utf-8")


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stored(
    paths: Sequence[Path], about: Sequence[Any], seconds: float | None, sample_rate: int, title: str
) -> tuple[Waveforms, str]:
    """Recordings from the cache, decoded first if they are not there.

    Args:
        paths: of the recordings, of any format, rate and number of channels.
        about: what else names the entry of the cache.
        seconds: longer recordings are cut to this; None keeps all.
        sample_rate: in Hz, that they are resampled to, each from its own rate.
        title: what a bar of progress says.

    Returns:
        The store, and the key of what it holds: of its bytes, their rate and the recordings' names.

    Raises:
        AudioError: a recording cannot be read, or was edited in its middle; the message names it.
        CacheError: the cache cannot be written.
    """
    names, prints = [path.name for path in paths], [fingerprint(path) for path in paths]
    key = content_key([versions("data/decoding"), *about, seconds, sample_rate, names, prints])
    check_unedited(paths, key)
    folder = cached_dir(KIND, key, lambda place: _decode(place, paths, seconds, sample_rate, title))
    return read(folder, sample_rate=sample_rate), content_key([bytes_key(folder), sample_rate, names])


def fingerprint(path: Path) -> str:
    """Tells a file from another version of it, without reading all of it: its size, its beginning and its end."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        digest.update(file.read(EDGE))
        file.seek(max(0, size - EDGE))
        digest.update(file.read(EDGE))
    return digest.hexdigest()


def _decode(folder: Path, paths: Sequence[Path], seconds: float | None, sample_rate: int, name: str) -> None:
    """Write all recordings to the folder (see py)."""
    write(folder, _decoded(paths, seconds, sample_rate, name))


def _decoded(paths: Sequence[Path], seconds: float | None, sample_rate: int, name: str) -> Iterator[np.ndarray]:
    """Recordings, each `(T,)` int16, in order; threads suffice, as decoders release the GIL."""
    blocks = [paths[start : start + BLOCK] for start in range(0, len(paths), BLOCK)]
    parallel = joblib.Parallel(n_jobs=min(len(blocks), joblib.cpu_count()), prefer="threads", return_as="generator")
    with tqdm(total=len(paths), desc=f"decoding {name}", unit="clip", disable=hidden()) as bar:
        for waves in parallel(joblib.delayed(_decode_block)(block, seconds, sample_rate) for block in blocks):
            bar.update(len(waves))
            yield from waves


def _decode_block(paths: Sequence[Path], seconds: float | None, sample_rate: int) -> list[np.ndarray]:
    most = None if seconds is None else round(seconds * sample_rate)
    waves = (load_audio(path, sample_rate=sample_rate)[:most].clamp(-1, 1) for path in paths)
    return [to_int16(wave.numpy()) for wave in waves]  # clamped, since resampling may pass full scale

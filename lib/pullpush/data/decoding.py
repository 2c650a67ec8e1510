"""Recordings on disk, decoded once into a store of the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from tqdm.auto import tqdm

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data import store
from pullpush.data.audio import load_audio
from pullpush.data.edits import check_unedited
from pullpush.golden import versions
from pullpush.progress import hidden

KIND = "recordings"
BLOCK = 64  # recordings that a thread decodes at a time
EDGE = 4096  # bytes at either end of a file that tell it from another of its size


def stored(
    paths: Sequence[Path], about: Sequence[Any], seconds: float | None, sample_rate: int, title: str
) -> tuple[store.Waveforms, str]:
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
    return store.read(folder, sample_rate=sample_rate), content_key([bytes_key(folder), sample_rate, names])


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
    """Write all recordings to the folder (see store.py)."""
    store.write(folder, _decoded(paths, seconds, sample_rate, name))


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
    return [store.to_int16(wave.numpy()) for wave in waves]  # clamped, since resampling may pass full scale

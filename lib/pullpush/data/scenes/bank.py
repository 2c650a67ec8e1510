"""A bank of recorded events: what scenes are composed of, and how its recordings are prepared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import cached_dir, content_key
from pullpush.catalogue import Card
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.data.language.vocabulary import Event
from pullpush.golden import versions

MAX_SECONDS = 3.0  # of longer recordings the loudest part is kept
FADE = 0.01  # seconds of fade where a recording is cut
EventClips = tuple[tuple[Tensor, ...], ...]  # for each event its recordings


@dataclass(frozen=True, eq=False)
class Bank:
    """Events and how they sound.

    events: sorted by name; clips: for each event its recordings, `(T,)` float32 at 16 kHz, trimmed, of equal loudness
    (-20 dB RMS, less where the peak would pass 0.99) and at most 3 s long; key: hash of the names and samples.
    """

    name: str
    events: tuple[Event, ...] = field(repr=False)
    clips: tuple[tuple[Tensor, ...], ...] = field(repr=False)
    key: str

    def __len__(self) -> int:
        return len(self.events)


@dataclass(frozen=True, kw_only=True)
class BankCard(Card):
    """A bank; `make` is a function: what stands behind the bank's name and a colon → its events and their clips.

    categories: whether "name:bird,insect" is the part of the bank with events of these categories; otherwise `make`
    reads what stands there. fetch: gets its recordings ahead of their use and gives the folder that they lie in, None
    where there is nothing to get; megabytes: of what it gets.
    """

    make: Callable[[str], tuple[tuple[Event, ...], EventClips]] = field(repr=False)
    categories: bool = True
    fetch: Callable[[], Path] | None = field(default=None, repr=False)
    megabytes: float = 0


def prepare(wave: Tensor, name: str | Path) -> Tensor:
    """A recording `(T,)` as banks hold it: trimmed, its loudest 3 s if it is longer, and normalised: `(T',)`.

    Raises:
        AudioError: it is silent; `name` says which.

    >>> prepare(torch.cat([torch.zeros(16_000), torch.full((64_000,), 0.3)]), "long").shape
    torch.Size([48000])
    """
    wave = trim_silence(check_audible(wave, name))
    most = round(MAX_SECONDS * SAMPLE_RATE)
    if len(wave) > most:
        energy = torch.nn.functional.pad(wave.double().square().cumsum(0), (1, 0))
        start = int((energy[most:] - energy[:-most]).argmax())
        wave = wave[start : start + most].clone()
        edge = torch.linspace(0, 1, round(FADE * SAMPLE_RATE))
        wave[: len(edge)] *= edge
        wave[-len(edge) :] *= edge.flip(0)
    return normalise_rms(wave)


def decoded(groups: Sequence[Sequence[Path]]) -> EventClips:
    """The recordings of each event, decoded once by the content of the files, and memory-mapped from then on.

    Raises:
        AudioError: a recording is damaged, empty or silent; it is named.
        CacheError: the cache cannot be written.
    """
    digests = [[hashlib.sha256(file.read_bytes()).hexdigest() for file in files] for files in groups]

    def build(folder: Path) -> None:
        waves = [prepare(load_audio(file), file).numpy() for files in groups for file in files]
        np.save(folder / "samples.npy", np.concatenate(waves))
        np.save(folder / "stops.npy", np.cumsum([len(wave) for wave in waves], dtype=np.int64))

    folder = cached_dir("banks", content_key([versions("data/decoding"), digests]), build)
    # "c": copy on write, since torch wants memory that it could write to; the file itself stays as it is.
    samples = torch.from_numpy(np.load(folder / "samples.npy", mmap_mode="c"))
    clips = iter(samples.tensor_split(torch.from_numpy(np.load(folder / "stops.npy"))[:-1]))
    return tuple(tuple(next(clips) for _ in files) for files in groups)

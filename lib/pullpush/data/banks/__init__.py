"""Banks of recorded events: what scenes are composed of, by name, and how their recordings are prepared.

A file adds a bank by a card, `CARD = BankCard(name=…, make=…)`, and `BANKS` finds it; a reader's own files lie in
`$PULLPUSH_EXTRA/banks/`. `tuxpaint:bird,insect` is the part of a bank with events of these categories.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import cached_dir, content_key, digest
from pullpush.catalogue import Card, Catalogue
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, loudest, normalise_rms, trim_silence
from pullpush.data.language.vocabulary import Event
from pullpush.errors import PullPushError, check_all_known, unknown
from pullpush.golden import versions

MAX_SECONDS = 3.0  # of longer recordings the loudest part is kept
FADE = 0.01  # seconds of fade where a recording is cut
EventClips = tuple[tuple[Tensor, ...], ...]  # for each event its recordings


@dataclass(frozen=True)
class Bank:
    """Events and how they sound; banks of one key are equal.

    events: sorted by name; clips: for each event its recordings, `(T,)` float32 at 16 kHz, trimmed, of equal loudness
    (-20 dB RMS, less where the peak would pass 0.99) and at most 3 s long; key: hash of the names and samples.
    """

    name: str = field(compare=False)
    events: tuple[Event, ...] = field(repr=False, compare=False)
    clips: EventClips = field(repr=False, compare=False)
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


BANKS: Catalogue[BankCard] = Catalogue("pullpush.data.banks", BankCard, "bank")


def create_bank(name: str) -> Bank:
    """The bank `name`: "tuxpaint", "synthetic" or "folder:/path/to/classes"; "tuxpaint:bird,insect" holds birds and
    insects only. Recordings are decoded once, and memory-mapped from the cache from then on.

    Raises:
        UnknownNameError: there is no such bank, or no event of such a category in it.
        DataNotFoundError: its recordings are not on disk and cannot be fetched.
        AudioError: a recording is corrupt, empty or silent; the message names the file.

    >>> [event.name for event in create_bank("synthetic:sweep").events]
    ['fall', 'rise']
    """
    kind, _, argument = name.partition(":")
    if kind not in BANKS:
        raise unknown("bank", name, ["folder:/path" if kind == "folder" else kind for kind in BANKS])
    events, clips = BANKS[kind].make(argument)
    if argument and BANKS[kind].categories:
        known, wanted = {event.category for event in events}, argument.split(",")
        check_all_known("category of events", wanted, known)
        rows = [row for row, event in enumerate(events) if event.category in wanted]
        events, clips = tuple(events[row] for row in rows), tuple(clips[row] for row in rows)
    if not len(events) == len(clips) or not all(clips):
        raise PullPushError(f"bank {name!r} needs at least one recording for each of its events")
    samples = hashlib.sha256()
    for group in clips:
        for clip in group:
            samples.update(clip.numpy().tobytes())
    counts = [[len(clip) for clip in group] for group in clips]
    key = content_key([kind, [event.name for event in events], counts, samples.hexdigest()])
    return Bank(name, events, clips, key)


def prepare(wave: Tensor, name: str | Path) -> Tensor:
    """A recording `(T,)` as banks hold it: trimmed, its loudest 3 s if it is longer, and normalised: `(T',)`; silence
    is refused, see `check_audible`.

    >>> prepare(torch.cat([torch.zeros(16_000), torch.full((64_000,), 0.3)]), "long").shape
    torch.Size([48000])
    """
    wave = trim_silence(check_audible(wave, name))
    most = round(MAX_SECONDS * SAMPLE_RATE)
    if len(wave) > most:
        wave = loudest(wave, most).clone()
        edge = torch.linspace(0, 1, round(FADE * SAMPLE_RATE))
        wave[: len(edge)] *= edge
        wave[-len(edge) :] *= edge.flip(0)
    return normalise_rms(wave)


def decoded(groups: Sequence[Sequence[Path]]) -> EventClips:
    """The recordings of each event, decoded once by the content of the files, and memory-mapped from then on."""
    digests = [[digest(file) for file in files] for files in groups]

    def build(folder: Path) -> None:
        waves = [prepare(load_audio(file), file).numpy() for files in groups for file in files]
        np.save(folder / "samples.npy", np.concatenate(waves))
        np.save(folder / "stops.npy", np.cumsum([len(wave) for wave in waves], dtype=np.int64))

    folder = cached_dir("banks", content_key([versions("data/decoding"), digests]), build)
    # "c": copy on write, since torch wants memory that it could write to; the file itself stays as it is.
    samples = torch.from_numpy(np.load(folder / "samples.npy", mmap_mode="c"))
    clips = iter(samples.tensor_split(torch.from_numpy(np.load(folder / "stops.npy"))[:-1]))
    return tuple(tuple(next(clips) for _ in files) for files in groups)

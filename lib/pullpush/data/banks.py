"""Banks of recorded events, by name: what scenes are composed of.

`tuxpaint` holds the recordings that `data/events.yaml` names, `synthetic` is made by formula, and `folder:/path` is
any folder with one subfolder of recordings per kind of sound. Adding a bank is one function and one row in `BANKS`.
`tuxpaint:bird,insect` is the part of a bank with events of these categories.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import cached_dir, content_key
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.data.synthetic import synthetic_clips, synthetic_events
from pullpush.data.tuxpaint import fetch, recording
from pullpush.data.vocabulary import Clause, Event, Phrases, load_events
from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.source import Registry, digest

MAX_SECONDS = 3.0  # of longer recordings the loudest part is kept
FADE = 0.01  # seconds of fade where a recording is cut
SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".mp3", ".aif", ".aiff")


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


def create_bank(name: str) -> Bank:
    """The bank `name`: "tuxpaint", "synthetic" or "folder:/path/to/classes".

    The first two take categories of events: "tuxpaint:bird,insect" holds birds and insects only.

    Recordings are decoded once, and memory-mapped from the cache from then on.

    Raises:
        UnknownNameError: there is no such bank, or no event of such a category in it.
        DataNotFoundError: its recordings are not on disk and cannot be fetched.
        AudioError: a recording is corrupt, empty or silent; the message names the file.
    """
    kind, _, argument = name.partition(":")
    if kind not in BANKS:
        raise unknown("bank", name, ["folder:/path" if kind == "folder" else kind for kind in BANKS])
    events, clips = BANKS[kind](argument)
    if argument and kind != "folder":
        events, clips = _of_categories(events, clips, argument.split(","))
    if not len(events) == len(clips) or not all(clips):
        raise PullPushError(f"bank {name!r} needs at least one recording for each of its events")
    samples = hashlib.sha256()
    for group in clips:
        for clip in group:
            samples.update(clip.numpy().tobytes())
    counts = [[len(clip) for clip in group] for group in clips]
    key = content_key([kind, [event.name for event in events], counts, samples.hexdigest()])
    return Bank(name, events, clips, key)


def _tuxpaint(_: str) -> tuple[tuple[Event, ...], tuple[tuple[Tensor, ...], ...]]:
    events, stamps = load_events(), fetch()
    return events, _decoded([[recording(stamps, stamp) for stamp in event.recordings] for event in events])


def _synthetic(_: str) -> tuple[tuple[Event, ...], tuple[tuple[Tensor, ...], ...]]:
    return synthetic_events(), synthetic_clips()


def _folder(path: str) -> tuple[tuple[Event, ...], tuple[tuple[Tensor, ...], ...]]:
    """One event for each subfolder that holds recordings, called by its name: in English only."""
    root = Path(path).expanduser()
    if not path or not root.is_dir():
        raise DataNotFoundError(f"no folder {path!r}: a bank of your own is 'folder:' and a path to a folder")
    groups = {
        folder.name: sorted(file for file in folder.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    }
    empty = [name for name, files in groups.items() if not files]
    if not groups or empty:
        raise DataNotFoundError(
            f"{root / empty[0] if empty else root} holds no {'recordings' if empty else 'subfolders'}: expected one "
            f"subfolder per kind of sound with {', '.join(SUFFIXES)} files in it, such as {root}/dog_bark/1.wav"
        )
    events = tuple(Event(name, name, (), {"eng": _english(name)}) for name in groups)
    return events, _decoded(list(groups.values()))


def _of_categories(
    events: Sequence[Event], clips: Sequence[tuple[Tensor, ...]], categories: Sequence[str]
) -> tuple[tuple[Event, ...], tuple[tuple[Tensor, ...], ...]]:
    """The events of some categories, in their order."""
    known = {event.category for event in events}
    for category in categories:
        if category not in known:
            raise unknown("category of events", category, known)
    rows = [row for row, event in enumerate(events) if event.category in categories]
    return tuple(events[row] for row in rows), tuple(clips[row] for row in rows)


BANKS: Registry[str, Callable[[str], tuple[tuple[Event, ...], tuple[tuple[Tensor, ...], ...]]]] = Registry(
    {"tuxpaint": _tuxpaint, "synthetic": _synthetic, "folder": _folder}
)


def _english(name: str) -> Phrases:
    """`dog_bark` → "a dog bark sound | is heard" …"""
    label = " ".join(name.replace("_", " ").replace("-", " ").replace("|", " ").split()).lower()
    sound = f"{'an' if label[:1] in 'aeiou' else 'a'} {label} sound"
    return Phrases((Clause(sound, "is heard"), Clause(sound, "can be heard")), (sound,), label)


# ---------------------------------------------------------------- decoding


def prepare(wave: Tensor, name: str | Path) -> Tensor:
    """A recording `(T,)` as banks hold it: trimmed, its loudest 3 s if it is longer, and normalised: `(T',)`.

    Raises:
        AudioError: it is silent; `name` says which.
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


def _decoded(groups: Sequence[Sequence[Path]]) -> tuple[tuple[Tensor, ...], ...]:
    """The recordings of each event, decoded once by the content of the files."""
    digests = [[hashlib.sha256(file.read_bytes()).hexdigest() for file in files] for files in groups]

    def build(folder: Path) -> None:
        waves = [prepare(load_audio(file), file).numpy() for files in groups for file in files]
        np.save(folder / "samples.npy", np.concatenate(waves))
        np.save(folder / "stops.npy", np.cumsum([len(wave) for wave in waves], dtype=np.int64))

    folder = cached_dir("banks", content_key([digest(prepare, load_audio), digests]), build)
    # "c": copy on write, since torch wants memory that it could write to; the file itself stays as it is.
    samples = torch.from_numpy(np.load(folder / "samples.npy", mmap_mode="c"))
    clips = iter(samples.tensor_split(torch.from_numpy(np.load(folder / "stops.npy"))[:-1]))
    return tuple(tuple(next(clips) for _ in files) for files in groups)

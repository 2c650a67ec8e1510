"""Samples of shards: where they lie in a tar file, what is heard, and what is said of it.

The members of a tar file that share their name up to the first dot are one *sample*: a recording, and JSON with its
captions (`{"captions": {"eng": ["a dog barks"]}}`) and whatever else is known of it. Shards that others wrote may have
captions in "caption", "captions" or "text" of the JSON, one or a list, as GLAP's and LAION's have, or in a member .txt.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import torch
from torch import Tensor
from torchaudio.functional import resample

from pullpush.data.store import FULL_SCALE
from pullpush.errors import PullPushError

AUDIO = ("flac", "wav", "ogg", "mp3", "opus")
TEXTS = ("captions", "caption", "text")
MARGIN = 0.1  # seconds that are read beyond a cut, so that resampling does not hear it


class DamagedError(PullPushError, ValueError):
    """A sample of a shard cannot be used; the message says why."""


class Sample(NamedTuple):
    """Where a sample lies in its shard: its key, and (first byte, bytes) of each member by extension."""

    key: str
    members: Mapping[str, tuple[int, int]]


class Told(NamedTuple):
    """What a sample says of its recording: captions by language, "" where it does not say which; and columns."""

    captions: Mapping[str, Sequence[str]]
    columns: Mapping[str, Any]


def samples_of(path: Path) -> tuple[list[Sample], str]:
    """The samples of a shard, from the headers of its members alone, and what ended it early, if anything did.

    Nothing is unpacked: between two headers the file is skipped.
    """
    found: list[Sample] = []
    stop = 0
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                stop = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                if member.isreg() and not member.name.startswith("__"):  # names of webdataset's own
                    _add(found, member)
        return found, _after(path, stop)
    except (tarfile.TarError, OSError, EOFError) as error:
        return found, f"{error or type(error).__name__}"


def _after(path: Path, stop: int) -> str:
    """What is wrong behind the last member that was found, if anything is: `tarfile` ends there without a word, be it
    the end or a header that is cut off or damaged.
    """
    with open(path, "rb") as file:
        file.seek(stop)
        if len(file.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE:
            return f"it ends at byte {stop + 1}, without the mark of an end: it was cut off"
        file.seek(stop)
        while block := file.read(1 << 20):
            if block.strip(b"\0"):
                return f"what stands behind byte {stop} is neither a member nor the end: it is damaged there"
    return ""


def _add(found: list[Sample], member: tarfile.TarInfo) -> None:
    """Put a member to the sample that it is of: the last one, or a new one."""
    folder, slash, name = member.name.rpartition("/")
    stem, dot, extension = name.partition(".")
    if not dot:
        return
    key = folder + slash + stem
    if not found or found[-1].key != key:
        found.append(Sample(key, {}))
    # pyrefly: ignore[unsupported-operation]
    found[-1].members[extension.lower()] = (member.offset_data, member.size)


def read_sample(
    path: Path, sample: Sample, *, sample_rate: int | None = None, seconds: float | None = None
) -> tuple[Tensor, Told]:
    """A sample's recording, in one channel, and what is said of it; one stretch of the file is read.

    Args:
        sample_rate: in Hz, resampled to; None: as it is.
        seconds: longer recordings are cut to this; None keeps all.

    Returns:
        `(T,)` float32 in [-1, 1]: of 16 bits exactly the numbers that `write_shards` was given; and what is said.

    Raises:
        DamagedError: a member is missing, cut short, or cannot be decoded.
    """
    held = {name: place for name, place in sample.members.items() if name in (*AUDIO, "json", "txt")}
    start, stop = min((first for first, _ in held.values()), default=0), max(map(sum, held.values()), default=0)
    try:
        with open(path, "rb") as file:
            file.seek(start)
            block = file.read(stop - start)
    except OSError as error:
        raise DamagedError(f"{error.strerror or error}") from error
    if len(block) < stop - start:
        raise DamagedError("the shard ends within it")
    raw = {name: block[first - start : first - start + size] for name, (first, size) in held.items()}
    said = told(raw)
    for name in AUDIO:
        if name in raw:
            return decoded(raw[name], sample_rate=sample_rate, seconds=seconds), said
    raise DamagedError(f"it has no recording ({', '.join(AUDIO)}), but {', '.join(sample.members) or 'nothing'}")


def told(raw: Mapping[str, bytes]) -> Told:
    """What the members "json" and "txt" of a sample say.

    Raises:
        DamagedError: the JSON cannot be read, or has captions of no known form.

    >>> told({"json": b'{"captions": {"eng": ["a dog"]}, "group": "sound"}'})
    Told(captions={'eng': ['a dog']}, columns={'group': 'sound'})
    >>> told({"txt": b"a dog barks"}).captions
    {'': ['a dog barks']}
    """
    try:
        columns = json.loads(raw.get("json", b"{}"))
        texts = raw["txt"].decode() if "txt" in raw else {}
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"its JSON or text cannot be read: {error}") from error
    if not isinstance(columns, dict):
        raise DamagedError("its JSON is not an object with names")
    for name in TEXTS:
        if name in columns:
            texts = columns.pop(name)
            break
    by_language = texts if isinstance(texts, dict) else {"": texts}
    captions = {language: [held] if isinstance(held, str) else held for language, held in by_language.items()}
    if not all(isinstance(held, list) and all(isinstance(text, str) for text in held) for held in captions.values()):
        raise DamagedError(f"its captions are neither a text nor a list of texts: {str(texts)[:80]}")
    return Told({language: [text for text in held if text.strip()] for language, held in captions.items()}, columns)


def decoded(raw: bytes, *, sample_rate: int | None = None, seconds: float | None = None) -> Tensor:
    """A recording from the bytes of its file, see `read_sample`."""
    try:
        with soundfile.SoundFile(io.BytesIO(raw)) as file:
            rate = file.samplerate
            frames = -1 if seconds is None else int((seconds + MARGIN) * rate)
            whole = file.subtype == "PCM_16"
            wave = file.read(frames, dtype="int16" if whole else "float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise DamagedError(f"its recording cannot be decoded: {error}") from error
    wave = torch.from_numpy(wave.astype(np.float32) / (FULL_SCALE if whole else 1)).mean(dim=1)
    if not len(wave) or not torch.isfinite(wave).all():
        raise DamagedError(
            "its recording is empty" if not len(wave) else "its recording has values that are no numbers"
        )
    wave = wave if sample_rate in (None, rate) else resample(wave, rate, sample_rate)
    return wave if seconds is None else wave[: round(seconds * (sample_rate or rate))]

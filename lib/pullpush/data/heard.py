"""What recordings of a dataset sound like once they are decoded: silent, clipped, or heard before."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pullpush.cache import cached_file, content_key
from pullpush.data.audio import check_audible
from pullpush.data.clips import StoredClips
from pullpush.data.registry import NAMED
from pullpush.data.store import FULL_SCALE
from pullpush.errors import AudioError

KIND = "heard"
CLIPPED = 0.01  # of the samples at full scale


def check_heard(title: str, splits: Mapping[str, StoredClips]) -> None:
    """Warn of recordings that are silent or clipped, and of those that come twice, in one split or in two.

    Samples are looked at once and what was found is kept. The same recording in other words of a codec, or a part of
    one, is what `data.overlap` looks for.
    """
    silent, clipped, first, twice, both = [], [], {}, [], []
    for split, clips in splits.items():
        notes = _notes(clips)
        names = [str(name) for name in clips.columns["file"]]
        silent += [f"{names[row]} ({split})" for row in notes["silent"]]
        clipped += [f"{names[row]} ({split})" for row in notes["clipped"]]
        for name, sound in zip(names, notes["sounds"], strict=True):
            before = first.setdefault(sound, (name, split))
            if before == (name, "valid"):
                continue  # MusicCaps chooses on what it tests on: its papers say so
            if before[1] != split:
                both.append(f"{before[0]} ({before[1]}) is {name} ({split})")
            elif before[0] != name:
                twice.append(f"{before[0]} is {name} ({split})")
    _warn(title, silent, "silent: record them again, or take their rows out")
    _warn(title, clipped, "at full scale for a hundredth of their length or more, as clipped sounds are")
    _warn(title, twice, "there twice, under two names: each is wrong where the other is right")
    _warn(title, both, "in two splits: a score on what was heard before says too much, take one of each out")


def _warn(title: str, found: Sequence[str], what: str) -> None:
    if found:
        more = " …" if found[NAMED:] else ""
        verb = "recordings are" if len(found) > 1 else "recording is"
        warnings.warn(f"{title}: {len(found)} {verb} {what}. {'; '.join(found[:NAMED])}{more}", stacklevel=5)


def _notes(clips: StoredClips) -> dict[str, list[Any]]:
    """Rows that are silent and clipped, and a name for what each recording sounds like."""

    def build(place: Path) -> None:
        found: dict[str, list[Any]] = {"silent": [], "clipped": [], "sounds": []}
        for row in range(len(clips)):
            samples = clips.waveforms[row]
            if not _audible(samples):
                found["silent"].append(row)
            elif (np.abs(samples.astype(np.int32)) >= FULL_SCALE).mean() >= CLIPPED:
                found["clipped"].append(row)
            # Silence is like silence, and is told of already.
            sound = hashlib.blake2b(samples.tobytes(), digest_size=12).hexdigest()
            found["sounds"].append(f"silence {clips.key} {row}" if row in found["silent"] else sound)
        place.write_text(json.dumps(found), encoding="utf-8")

    return json.loads(cached_file(KIND, f"{content_key([clips.key, len(clips)])}.json", build).read_text("utf-8"))


def _audible(samples: np.ndarray) -> bool:
    try:
        check_audible(torch.from_numpy(samples.astype(np.float32) / FULL_SCALE), "")
    except AudioError:
        return False
    return True

"""Clips for the tests of shards, and ways to damage what was written."""

import io
import tarfile
from pathlib import Path

import numpy as np

from pullpush.data.clips import StoredClips
from pullpush.data.store import Waveforms, to_int16
from pullpush.errors import unknown

LANGUAGES = ("eng", "fra")


def clips(count: int = 20, seed: int = 0, *, name: str = "train") -> StoredClips:
    """Tones of different lengths, each with a caption or two in two languages, some without French."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(800, 1600, count)
    tones = [np.sin(np.arange(length) * (0.05 + 0.01 * n)) * 0.4 for n, length in enumerate(lengths)]
    waves = [to_int16(tone + 0.05 * rng.standard_normal(len(tone))) for tone in tones]
    store = Waveforms(np.concatenate(waves), np.cumsum(lengths))
    columns = {"file": [f"{seed}-{n}.wav" for n in range(count)], "loudness": np.linspace(0, 1, count)}
    return StoredClips(name, f"tones {seed} {count}", store, np.arange(count), columns, write)


def write(columns, language):
    if language not in LANGUAGES:
        raise unknown("language", language, LANGUAGES)
    texts = [[f"{language} {file}", f"{language} {file} again"] for file in columns["file"]]
    return [[] if language == "fra" and n % 5 == 4 else held for n, held in enumerate(texts)]


def rewrite(path: Path, change) -> None:
    """A shard with its members changed: `change(name, content)` gives the new content, None for none at all."""
    with tarfile.open(path) as tar:
        held = [(member.name, tar.extractfile(member).read()) for member in tar]
    with tarfile.open(path, "w") as tar:
        for name, content in held:
            if (new := change(name, content)) is not None:
                member = tarfile.TarInfo(name)
                member.size = len(new)
                tar.addfile(member, io.BytesIO(new))

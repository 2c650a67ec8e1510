"""Probes of clips and batches: which caption each clip brings, in which order they come, mixed, altered, in shards."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pullpush.data.batches import PairDataset, balanced_order, shares
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.mixture import MixtureConfig, Part, asked_in
from pullpush.data.pairing import CAPTIONS, SAMPLING, Item, Pairing, collate
from pullpush.data.recordings.texts import label_prompts
from pullpush.data.scenes.altered import AlteredWaveforms, First, Gain, Loudest, WhiteNoise
from pullpush.data.scenes.augmented import AugmentedConfig, _pairs, mixed_waves, write_merged
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.shards.files import annotation, read_sample, samples_of, shards_of, write_shards
from pullpush.data.shards.stream import Order, Schedule, ShardDataset, captions_in, substitutes
from pullpush.data.store import Waveforms, to_int16
from pullpush.golden.compare import Values
from pullpush.golden.data_scenes import looks
from pullpush.golden.inputs import numbers

LANGUAGES = ("eng", "fra", "deu")
MISSING = {"fra": 3, "deu": 4}  # every third clip has no French, every fourth no German


def clips(count: int = 12, *, name: str = "train") -> StoredClips:
    """Noises of different lengths, told in three languages, as single sounds of a few events."""
    sizes = [300 + 97 * row % 500 for row in range(count)]
    waves = [to_int16((0.1 * numbers(size, seed=row)).clamp(-1, 1).numpy()) for row, size in enumerate(sizes)]
    columns: dict[str, Sequence[Any]] = {
        "file": [f"{name}-{row}.wav" for row in range(count)],
        "scene": [Scene((Sound(row % 7, 0, 0.01 * (row % 3)),), "single", None, 0.05) for row in range(count)],
        "label": [row % 7 for row in range(count)],
        "group": [("bird", "tool", "bell")[row * row % 7 % 3] for row in range(count)],
        "spoken": [LANGUAGES[row % 2] for row in range(count)],
    }
    store = Waveforms(np.concatenate(waves), np.cumsum(sizes))
    return StoredClips(name, f"probe {name}", store, np.arange(count), columns, _write, ask=_ask)


def pairing() -> Values:
    """The texts of clips in two epochs, by every way to draw languages and captions."""
    held = {code: _write(clips().columns, code) for code in LANGUAGES}
    found: dict[str, Any] = {}
    for sampling in SAMPLING:
        for captions in CAPTIONS:
            drawn = Pairing(LANGUAGES, sampling, captions, seed=2)
            rows = range(4 if sampling == "all" else 10)
            found[f"{sampling} {captions}"] = [
                list(drawn.texts(row, epoch, {code: texts[row] for code, texts in held.items()}))
                for epoch in (0, 1)
                for row in rows
            ]
    found["needed"] = [Pairing(LANGUAGES, sampling).needed for sampling in SAMPLING]
    return found


def batches() -> Values:
    """Batches of pairs: their order, alone and in processes, balanced or not, and what they hold side by side."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of translations that are missing
        plain = PairDataset(clips(), languages=("eng", "fra"), sampling="all", columns=("label", "group"), seed=1)
        weights = {"bird": 1.0, "tool": 2.0, "bell": 0.0}
        even = PairDataset(clips(), weights=weights, sample_rate=8000, captions="random")
        for number, batch in enumerate(plain.batches(5, seed=3, epoch=1, skip=1)):
            found[f"batch {number}"] = [batch.index.tolist(), batch.lengths.tolist(), batch.texts, list(batch.parallel)]
            found[f"audio {number}"] = looks(batch.audio.flatten())
            found[f"columns {number}"] = [batch.columns["label"], batch.columns["group"], batch.present]
        for rank in (0, 1):
            found[f"rank {rank}"] = [one.index for one in even.batches(5, seed=3, epoch=2, rank=rank, processes=2)]
        found["resampled"] = looks(even[-1].waveform)
        found["missing"] = [list(plain.missing.items()), plain.coverage().to_numpy().tolist(), plain.steps(5)]
    rows, counts = shares([str(group) for group in clips().columns["group"]], {"bird": 1, "tool": 3, "bell": 2})
    found["balanced"] = [balanced_order(rows, counts, seed=4, epoch=epoch) for epoch in range(3)]
    items = [Item(row, torch.ones(row + 1), row + 1, f"t{row}", "eng", columns={"x": [0] * row}) for row in range(3)]
    ragged = collate(items)
    found["ragged"] = [ragged.audio.tolist(), ragged.columns["x"]]
    return found


def shards() -> Values:
    """The order of samples in shards, what samples say, and batches that are read from them."""
    order = Order([3, 1, 7, 2], window=5, seed=(1, 2))
    schedule = Schedule([np.array([3, 4]), np.array([5])], [8, 4], window=4)
    uneven = Schedule([np.array([9])] * 3, [2, 6, 1], window=9)
    found: dict[str, Any] = {
        "order": [order.at(position) for position in range(len(order))],
        "substitutes": [list(substitutes(place, 9)) for place in (0, 5)],
        "taken": [np.bincount(uneven.stream[:first], minlength=3) for first in range(10)],
        "schedule": [schedule.batch(number, 5, epoch=epoch) for epoch in (0, 3) for number in range(2)],
        "steps": [schedule.steps(5, processes) for processes in (1, 2, 3)],
        "told": [list(annotation(raw).captions.items()) for raw in SAID],
        "captions": list(captions_in(annotation(SAID[0]), ("mul", "deu")).items()),
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples without French, which others replace
        place = Path(folder)
        write_shards(clips(7), place / "a", languages=("eng", "fra"), per_shard=3, columns=("file", "label"))
        write_shards(clips(5, name="more"), place / "b", columns=("file", "label"), sample_rate=8000)
        one = ShardDataset(place / "a", languages=("fra",), captions="random", seed=1, buffer=4, columns=("label",))
        for number, batch in enumerate(one.batches(3, seed=2, epoch=1)):
            found[f"batch {number}"] = [
                batch.index.tolist(),
                batch.lengths.tolist(),
                batch.texts,
                batch.columns["label"],
            ]
            found[f"audio {number}"] = looks(batch.audio.flatten())
        both = {"a": place / "a", "b": place / "b"}
        mixed = ShardDataset(both, weights={"a": 1, "b": 2}, sample_rate=11_025, seconds=0.02, columns=("group",))
        drawn = [batch for epoch in (0, 1) for batch in mixed.batches(4, seed=2, epoch=epoch, skip=1)]
        found["mixed"] = [[batch.index.tolist(), batch.columns["group"]] for batch in drawn]
        found["cut"] = looks(drawn[0].audio.flatten())
        found["offered"] = sorted(mixed.offered)
        paths = [shard.path for shard in shards_of(place / "a")]
        found["samples"] = [[sample.key, list(sample.members)] for path in paths for sample in samples_of(path)[0]]
        found["read"] = looks(read_sample(paths[1], samples_of(paths[1])[0][2])[0])
    return found


SAID = (
    {"json": b'{"captions": {"eng": ["a dog"], "fra": "un chien"}, "group": "sound"}'},
    {"json": b'{"text": "a cat"}', "txt": b"a cow"},
    {"txt": b"a dog barks"},
)


def mixture() -> Values:
    """Several worlds as one: their columns, captions, audio and relevance."""
    first = Part(_Config(), "sound", languages=("eng", "fra"), limit=5)
    second = Part(_Config(9, "talk"), "speech", own="spoken", groups={"fra": "far"}, group="near")
    world = MixtureConfig((first, second)).load()
    train, test = world.train, world.test
    few = train.select([0, 6, 3, -1])
    return {
        "captions": train.captions("mul"),
        "columns": [list(few.columns), few.columns["domain"], few.columns["group"], few.columns["file"]],
        "lengths": train.lengths,
        "audio": looks(few.audio(slice(0, 4))[0].flatten()),
        "resampled": looks(few.head(2).audio([1, 0], sample_rate=8000)[0].flatten()),
        "relevance": test.relevance(test.head(9))[::3],
        "asked": [*asked_in("fra", clips()).prompts("mul"), *asked_in("fra", clips()).prompts("deu")],
    }


def augmented() -> Values:
    """Further captions, and pairs of clips as one: which, what is heard, and what is told."""
    config = AugmentedConfig(_Config(), (_Words("x"), _Words("y")), copies=2)
    world = config.load()
    pairs = _pairs(world, clips(), 4, 3)
    both = {
        side: [{"file": clips().columns["file"][pair[at]]} for pair in pairs]
        for at, side in ((0, "first"), (1, "second"))
    }
    apart = StoredClips("train", "probe", clips().waveforms, np.arange(12), {"file": clips().columns["file"]}, _write)
    return {
        "captions": world.train.captions("eng")[:3],
        "others": world.train.captions("fra")[:3],
        "pairs": pairs,
        "mixed": [looks(wave.astype(np.float64)) for wave in mixed_waves(clips(), pairs)],
        "apart": [looks(wave.astype(np.float64)) for wave in mixed_waves(apart, pairs[:2])],
        "merged": write_merged(_write, _Words("+"), "eng", both, "eng"),
        "elsewhere": write_merged(_write, _Words("+"), "eng", both, "fra"),
    }


def altered() -> Values:
    """Clips that are cut, quieter and noisier, at their own rate and another."""
    found: dict[str, Any] = {}
    waves = clips(5).waveforms
    for change in (First(0.02), Loudest(0.015), Gain(-7.0), WhiteNoise(3.0), WhiteNoise(-2.0, seed=4)):
        heard = AlteredWaveforms(waves.samples, waves.stops, waves.sample_rate, alteration=change)
        found[f"{change}"] = looks(heard.audio([0, 3])[0].flatten())
        found[f"{change} at 8 kHz"] = looks(heard.audio([1], sample_rate=8000)[0].flatten())
        found[f"{change} lengths"] = heard.lengths
    return found


@dataclass(frozen=True)
class _Config:
    """A world of noises."""

    count: int = 12
    name: str = "noise"

    def load(self) -> World:
        """See `data.clips.Config`."""
        splits = {split: clips(self.count, name=f"{self.name}-{split}") for split in ("train", "valid", "test")}
        return World(self, splits)


@dataclass(frozen=True)
class _Words:
    """Rewrites and merges by a sign."""

    sign: str

    def of(self, clips: Any, language: str, events: Any = ()) -> _Words:
        """See `Rewriter`."""
        return self

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Rewriter`."""
        return [f"{caption} {self.sign}{number}" for caption in captions]

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Merger`."""
        return [f"{one} {self.sign} {other}" for one, other in zip(first, second, strict=True)]


def _write(columns: Columns, language: str) -> list[list[str]]:
    """Three captions of every clip in English, two in other languages, none of some."""
    rows = [int(file.rpartition("-")[2].removesuffix(".wav")) for file in columns["file"]]
    told = [[f"{language} {row} {number}" for number in range(3 if language == "eng" else 2)] for row in rows]
    every = MISSING.get(language, 0)
    return [[] if every and row % every == every - 1 else texts for row, texts in zip(rows, told, strict=True)]


def _ask(language: str, template: str | None) -> list[str]:
    return label_prompts([f"{language} label"], "eng", template)

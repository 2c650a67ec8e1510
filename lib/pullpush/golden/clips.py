"""Probes of clips and their texts: which caption each brings, in which order they come, mixed, altered, in shards;
labels, tables of captions, other wordings, sentences.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pullpush.cache import content_key
from pullpush.data.banks.recorded import english_phrases
from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.batches import Item, PairDataset, balanced_order, collate, shares
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.language.grammar import captions
from pullpush.data.language.nli import LABELS, Statement, grouped, holds, triples, with_triples
from pullpush.data.language.vocabulary import load_events, load_labels
from pullpush.data.language.wording import aligned_captions, load_ways, worded_captions
from pullpush.data.languages import LANGUAGES
from pullpush.data.mixture import MixtureConfig, Part, asked_in
from pullpush.data.pairing import SAMPLING, Pairing
from pullpush.data.recordings.corpora import label_prompts
from pullpush.data.scenes.altered import AlteredWaveforms, First, Gain, Loudest, WhiteNoise
from pullpush.data.scenes.augmented import AugmentedConfig, _pairs, mixed_waves, write_merged
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.store import Waveforms, to_int16
from pullpush.golden.compare import Values
from pullpush.golden.probes import looks, numbers
from pullpush.golden.recordings import DATA
from pullpush.golden.scenes import every_scene

THREE = ("eng", "fra", "deu")
MISSING = {"fra": 3, "deu": 4}  # every third clip has no French, every fourth no German


def clips(count: int = 12, *, name: str = "train") -> StoredClips:
    """Noises of different lengths, with captions in three languages, as single sounds of a few events."""
    sizes = [300 + 97 * row % 500 for row in range(count)]
    waves = [to_int16((0.1 * numbers(size, seed=row)).clamp(-1, 1).numpy()) for row, size in enumerate(sizes)]
    columns: dict[str, Sequence[Any]] = {
        "file": [f"{name}-{row}.wav" for row in range(count)],
        "scene": [Scene((Sound(row % 7, 0, 0.01 * (row % 3)),), "single", None, 0.05) for row in range(count)],
        "label": [row % 7 for row in range(count)],
        "group": [("bird", "tool", "bell")[row * row % 7 % 3] for row in range(count)],
        "spoken": [THREE[row % 2] for row in range(count)],
    }
    store = Waveforms(np.concatenate(waves), np.cumsum(sizes))
    ask = lambda language, template: label_prompts([f"{language} label"], "eng", template)  # noqa: E731
    return StoredClips(name, f"probe {name}", store, np.arange(count), columns, _write, ask=ask)


def silent(columns: Mapping[str, Any], write: Any = lambda *asked: []) -> StoredClips:
    """Clips of one sample each, of which columns tell, and texts that are written of these."""
    count = len(next(iter(columns.values())))
    waves = Waveforms(np.zeros(count, np.int16), np.arange(1, count + 1))
    return StoredClips("train", "probe", waves, np.arange(count), columns, write)


def _write(columns: Columns, language: str) -> list[list[str]]:
    """Three captions of every clip in English, two in other languages, none of some."""
    rows = [int(file.rpartition("-")[2].removesuffix(".wav")) for file in columns["file"]]
    count, every = 3 if language == "eng" else 2, MISSING.get(language, 0)
    lacks = [every and row % every == every - 1 for row in rows]
    return [
        [] if lack else [f"{language} {row} {number}" for number in range(count)]
        for row, lack in zip(rows, lacks, strict=True)
    ]


@DATA("pairing")
def pairing() -> Values:
    """The texts of clips in two epochs, by every way to draw languages and captions."""
    captions = {code: _write(clips().columns, code) for code in THREE}
    values: dict[str, Any] = {"needed": [Pairing(THREE, sampling).needed for sampling in SAMPLING]}
    for sampling in SAMPLING:
        for choice in ("first", "random"):
            drawn = Pairing(THREE, sampling, choice, seed=2)
            rows = [{code: each[row] for code, each in captions.items()} for row in range(10)]
            rows = rows[:4] if sampling == "all" else rows
            values[f"{sampling} {choice}"] = [
                list(drawn.texts(row, epoch, each)) for epoch in (0, 1) for row, each in enumerate(rows)
            ]
    return values


@DATA("every-caption")
def every_caption() -> Values:
    """Batches of clips with all their captions, some with fewer."""
    values: dict[str, Any] = {}
    for sampling, languages in (("fixed", ("eng",)), ("random", THREE)):
        with warnings.catch_warnings(action="ignore"):  # of translations that are missing
            pairs = PairDataset(clips(), languages=languages, sampling=sampling, captions="all", seed=1)
        values[sampling] = [
            [batch.texts, list(batch.parallel), list(batch.parallel_languages), batch.present]
            for batch in pairs.batches(5, seed=3, epoch=1)
        ]
    return values


@DATA("batches")
def batches() -> Values:
    """Batches of pairs: their order, alone and in processes, balanced or not, and what they hold side by side."""
    values: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):  # of translations that are missing
        plain = PairDataset(clips(), languages=("eng", "fra"), sampling="all", columns=("label", "group"), seed=1)
        weights = {"bird": 1.0, "tool": 2.0, "bell": 0.0}
        even = PairDataset(clips(), weights=weights, sample_rate=8000, captions="random")
        for number, batch in enumerate(plain.batches(5, seed=3, epoch=1, skip=1)):
            pairs = [batch.index.tolist(), batch.lengths.tolist(), batch.texts, list(batch.parallel)]
            values[f"batch {number}"] = pairs
            values[f"audio {number}"] = looks(batch.audio.flatten())
            values[f"columns {number}"] = [batch.columns["label"], batch.columns["group"], batch.present]
        for rank in (0, 1):
            values[f"rank {rank}"] = [one.index for one in even.batches(5, seed=3, epoch=2, rank=rank, processes=2)]
        values["resampled"] = looks(even[-1].waveform)
        lacks = plain.missing
        values["missing"] = [
            list(lacks.items()),
            [[code, len(plain) - count, count] for code, count in lacks.items()],
            plain.steps(5),
        ]
    rows, counts = shares([str(group) for group in clips().columns["group"]], {"bird": 1, "tool": 3, "bell": 2})
    items = [Item(row, torch.ones(row + 1), f"t{row}", "eng", columns={"x": [0] * row}) for row in range(3)]
    ragged = collate(items)
    balanced = [balanced_order(rows, counts, seed=4, epoch=epoch) for epoch in range(3)]
    return values | {"balanced": balanced, "ragged": [ragged.audio.tolist(), ragged.columns["x"]]}


@dataclass(frozen=True)
class Noises:
    """A world of noises."""

    count: int = 12
    name: str = "noise"

    def load(self) -> World:
        splits = {split: clips(self.count, name=f"{self.name}-{split}") for split in ("train", "valid", "test")}
        return World(self, splits)


@dataclass(frozen=True)
class Signed:
    """Rewrites and merges by a sign."""

    sign: str

    def of(self, clips: Any, language: str, events: Any = ()) -> "Signed":
        return self

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        return [f"{caption} {self.sign}{number}" for caption in captions]

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        return [f"{one} {self.sign} {other}" for one, other in zip(first, second, strict=True)]


@DATA("mixture")
def mixture() -> Values:
    """Several worlds as one: their columns, captions, audio and relevance."""
    first = Part(Noises(), "sound", languages=("eng", "fra"), limit=5)
    second = Part(Noises(9, "talk"), "speech", own="spoken", groups={"fra": "far"}, group="near")
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


@DATA("augmented")
def augmented() -> Values:
    """Further captions, and pairs of clips as one: which, how they sound, and their captions."""
    world = AugmentedConfig(Noises(), (Signed("x"), Signed("y")), copies=2).load()
    pairs, files = _pairs(world, clips(), 4, 3), clips().columns["file"]
    sides = {side: [{"file": files[pair[at]]} for pair in pairs] for at, side in enumerate(("first", "second"))}
    apart = StoredClips("train", "probe", clips().waveforms, np.arange(12), {"file": files}, _write)
    return {
        "captions": world.train.captions("eng")[:3],
        "others": world.train.captions("fra")[:3],
        "pairs": pairs,
        "mixed": [looks(wave.astype(np.float64)) for wave in mixed_waves(clips(), pairs)],
        "apart": [looks(wave.astype(np.float64)) for wave in mixed_waves(apart, pairs[:2])],
        "merged": write_merged(_write, Signed("+"), "eng", sides, "eng"),
        "elsewhere": write_merged(_write, Signed("+"), "eng", sides, "fra"),
    }


@DATA("altered")
def altered() -> Values:
    """Clips that are cut, quieter and noisier, at their own rate and another."""
    values: dict[str, Any] = {}
    waves = clips(5).waveforms
    for change in (First(0.02), Loudest(0.015), Gain(-7.0), WhiteNoise(3.0), WhiteNoise(-2.0, seed=4)):
        changed = AlteredWaveforms(waves.samples, waves.stops, waves.sample_rate, alteration=change)
        values[f"{change}"] = looks(changed.audio([0, 3])[0].flatten())
        values[f"{change} at 8 kHz"] = looks(changed.audio([1], sample_rate=8000)[0].flatten())
        values[f"{change} lengths"] = changed.lengths
    return values


# ---------------------------------------------------------------- texts


@DATA("labels")
def labels() -> Values:
    """Prompts of labels in languages with and without a file, and all that the table says."""
    known, folders = load_labels(), map(english_phrases, ("dog_bark", "one", "8", "hour-x"))
    return {
        "table": content_key([known.sentences, known.names]),
        "asked": known.prompts(["owl", "rain"], "ita", "{label}?"),
        "folder": [[phrases.nouns, phrases.label] for phrases in folders],
        **{f"prompts {code}": known.prompts(sorted(names)[::40], code) for code, names in known.names.items()},
    }


@DATA("wording")
def wording() -> Values:
    """Captions that are translations of each other, sentences or titles alone, and all ways that the table has."""
    events = synthetic_events()
    scenes = every_scene(len(events))
    values: dict[str, Any] = {"ways": content_key(load_ways())}
    for code in LANGUAGES:
        told = [aligned_captions(scene, events, language=code, n=1, seed=3) for scene in scenes[1::2]]
        values[f"aligned {code}"] = [text for each in told for text in each]
    values["several"] = aligned_captions(scenes[2], events, language="fra", n=5)
    for kind in ("sentences", "titles"):
        values[kind] = [captions(scene, events, language="nld", n=1, seed=2, kinds=[kind]) for scene in scenes[::5]]
    return values


@DATA("lexicon")
def lexicon() -> Values:
    """Captions in few words, and in few words nearly always."""
    events = synthetic_events()
    scenes = every_scene(len(events))[::3]
    values: dict[str, Any] = {}
    for code in ("eng", "deu", "jpn"):
        for vocabulary, skew in (("narrow", 0.0), ("rich", 1.5), ("narrow", 0.5)):
            options = {"language": code, "vocabulary": vocabulary, "skew": skew, "n": 2, "seed": 1}
            told = [worded_captions(scene, events, **options) for scene in scenes]
            values[f"{code} {vocabulary} {skew}"] = told[:4] if vocabulary == "rich" else told[3:]
    return values


@DATA("nli")
def nli() -> Values:
    """Sentences that follow from scenes or contradict them, triples of corpora, and triples beside clips."""
    events, truth = load_events(), Statement("sequence", ("crow", "frog"))
    statements = [("sequence", ("bird", "frog")), ("sequence", ("frog", "bird")), ("single", ("animal",))]
    rows = [("a dog barks", "an animal", 0), ("a dog barks", "quiet", 2), ("rain", "so", 1), ("rain", "sun", 2)]
    pairs = [dict(zip(("premise", "hypothesis", "label"), row, strict=True)) for row in rows]
    published = [{"sentence1": "a", "sentence2": f" {gold} ", "gold_label": gold} for gold in LABELS]
    made = triples(every_scene(len(synthetic_events())), synthetic_events(), seed=2)
    world = with_triples(World(None, {"train": silent({"file": ["a", "b", "c"]})}), made[:2], seed=1)
    return {
        "synthetic": [list(triple) for triple in made],
        "events": [list(triple) for triple in triples(every_scene(len(events))[::2], events)],
        "holds": [holds(truth, Statement(*each), events) for each in statements],
        "perhaps": holds(Statement("single", ("duck",)), Statement("single", ("drake",)), events, perhaps=True),
        "grouped": [list(triple) for triple in grouped([*pairs, *published])],
        "beside": [world.train.columns["premise"], world.train.columns["contradiction"]],
    }

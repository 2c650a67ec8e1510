"""Worlds whose clips bring a triple of sentences each, for supervised training of sentence embeddings beside their own.

    load_data(NLIConfig(WorldConfig(), WorldConfig(seed=1)))  # triples of scenes: nothing is fetched
    load_data(NLIConfig(WorldConfig(), "nli"))                # SNLI and MNLI

The sentences have nothing to do with the clips: they only come at the same time. SNLI and MNLI are triples, grouped by
premise as in supervised SimCSE (Gao et al. 2021, section 4); `datasets` reads them, from the hub, which keeps them in
its cache, or from a folder of JSON lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from pullpush.cache import content_key
from pullpush.data.banks import create_bank
from pullpush.data.clips import Clips, Config, StoredClips, World
from pullpush.data.language.entailment import Triple, triples
from pullpush.data.language.lexicon import LexiconConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig, draw_scenes
from pullpush.data.sets.hf import load_dataset
from pullpush.errors import DataNotFoundError, PullPushError, SettingError, unknown

SOURCES = {"snli": "stanfordnlp/snli", "mnli": "nyu-mll/multi_nli"}
CORPORA = {"snli": ("snli",), "mnli": ("mnli",), "nli": ("snli", "mnli")}
COLUMNS = (("premise", "sentence1"), ("hypothesis", "sentence2"))  # on the hub, and as they are published
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2, "-": -1}  # "-": the annotators did not agree
ENTAILMENT, CONTRADICTION = LABELS["entailment"], LABELS["contradiction"]
Scenes = WorldConfig | HeldOutConfig | LexiconConfig


def nli_corpus(name: str, *, n: int | None = None, seed: int = 0) -> list[Triple]:
    """Triples of the training pairs of "snli", "mnli", or "nli", which are both.

    Args:
        name: of the corpus, from the hub; "snli:/folder" reads `snli*.jsonl` there: lines with premise, hypothesis and
            label, or with sentence1, sentence2 and gold_label, as the corpora are published.
        n: how many to draw, in random order; None: all, in their own.
        seed: of that draw.

    Raises:
        UnknownNameError: there is no such corpus.
        DataNotFoundError: it is neither there nor on the hub.
        PullPushError: `datasets` is not installed, or cannot read it, or no premise has both kinds of hypotheses.
    """
    corpus, folder = located(name)
    found = [triple for part in CORPORA[corpus] for triple in grouped(_pairs(part, folder))]
    if not found:
        raise PullPushError(f"{name} has no premise with both an entailment and a contradiction")
    if n is None:
        return found
    return [found[row] for row in np.random.default_rng(seed).permutation(len(found))[:n].tolist()]


def located(name: str) -> tuple[str, str]:
    """The corpus and the folder of "snli:/folder"; no folder: "". `UnknownNameError` if there is no such corpus."""
    corpus, _, folder = name.partition(":")
    if corpus not in CORPORA:
        raise unknown("corpus of triples", corpus, CORPORA)
    return corpus, folder


def grouped(pairs: Iterable[Mapping[str, Any]]) -> list[Triple]:
    """One triple for each premise that has both an entailment and a contradiction; of several the first.

    pairs: see `nli_corpus`; labels are 0 entailment, 1 neutral, 2 contradiction, -1 none.

    >>> rows = [("a dog barks", "an animal is heard", 0), ("a dog barks", "it is quiet", 2), ("it rains", "so", 0)]
    >>> grouped(dict(zip(("premise", "hypothesis", "label"), row)) for row in rows)
    [Triple(premise='a dog barks', entailment='an animal is heard', contradiction='it is quiet')]
    """
    kinds: dict[str, dict[int, str]] = {}
    for pair in pairs:
        premise, hypothesis = (pair[new if new in pair else old].strip() for new, old in COLUMNS)
        label = pair["label"] if "label" in pair else LABELS[pair["gold_label"]]
        if label in (ENTAILMENT, CONTRADICTION) and premise and hypothesis:
            kinds.setdefault(premise, {}).setdefault(label, hypothesis)
    return [
        Triple(premise, found[ENTAILMENT], found[CONTRADICTION]) for premise, found in kinds.items() if len(found) == 2
    ]


def _pairs(name: str, folder: str) -> Iterable[Mapping[str, Any]]:
    """The training pairs of one corpus."""
    files = sorted(str(path) for path in Path(folder).glob(f"{name}*.jsonl")) if folder else []
    if folder and not files:
        raise DataNotFoundError(f"{folder} holds no {name}*.jsonl: expected lines with premise, hypothesis and label")
    try:
        if files:
            return load_dataset("json", data_files=files, split="train")
        return load_dataset(SOURCES[name], split="train")
    except OSError as error:
        raise DataNotFoundError(f"{SOURCES[name]} cannot be fetched: {error}") from error


@dataclass(frozen=True)
class NLIConfig:
    """Any data, with a triple of sentences beside each clip.

    data: the world; sentences: a world of scenes, whose training scenes make a triple each (only its events and sizes
    count: nothing is rendered), or a corpus: "snli", "mnli", "nli" (see `nli_corpus`); n: most triples,
    None for all; seed: of what is drawn, the triples and which clip has which.
    """

    data: Config
    sentences: Scenes | str
    n: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.sentences, str):
            located(self.sentences)
        if self.n is not None and self.n < 1:
            raise ValueError(f"n must be at least 1, got {self.n}")

    def load(self) -> World:
        """The world with the columns "premise", "entailment" and "contradiction"; see `with_triples`.

        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> world = NLIConfig(small, small).load()
        >>> [len(clips.columns["premise"]) for clips in world.splits.values()]
        [4, 2, 2, 12]
        """
        if isinstance(self.sentences, str):
            found = nli_corpus(self.sentences, n=self.n, seed=self.seed)
        else:
            found = scene_triples(self.sentences, seed=self.seed)[: self.n]
        world = with_triples(self.data.load(), found, seed=self.seed)
        return replace(world, config=self, parts=(*world.parts, "data/nli"))


def scene_triples(config: Scenes, *, seed: int = 0) -> list[Triple]:
    """The triples of a world's training scenes, which are drawn and not rendered; see `entailment.triples`."""
    while not isinstance(config, WorldConfig):
        config = config.world if isinstance(config, HeldOutConfig) else config.scenes
    bank = create_bank(config.bank)
    return triples(draw_scenes("train", config.n_train, bank, config), bank.events, seed=seed)


def with_triples(world: World, sentences: Sequence[Triple], *, seed: int = 0) -> World:
    """The same world, in which clip i of every split brings one of M triples, number i mod M of their shuffled order.

    Captions, audio and relevance are the world's own, be it of waveforms or of features. Runs are named apart by the
    triples. What is trained in another process is loaded from its configuration, which knows of no triples: describe
    such a world by `NLIConfig`.
    """
    if not sentences:
        raise SettingError(
            "there are no triples to bring: a contradiction tells of sounds that are not heard, so that the bank needs "
            "two kinds of sounds or more: give its folder another class"
        )
    order = np.random.default_rng(seed).permutation(len(sentences)).tolist()
    shuffled = [sentences[place] for place in order]
    splits = {name: _bring(clips, shuffled) for name, clips in world.splits.items()}
    return replace(world, splits=splits, words=content_key([world.words, [list(triple) for triple in shuffled]]))


def _bring(clips: Any, sentences: Sequence[Triple]) -> Clips:
    """The same clips with the columns; features hold the clips that they were made of."""
    if not isinstance(clips, StoredClips):
        return replace(clips, clips=_bring(clips.clips, sentences))
    rows = [sentences[row % len(sentences)] for row in range(len(clips))]
    columns = dict(zip(Triple._fields, map(list, zip(*rows, strict=True)), strict=True))
    return cast(Clips, replace(clips, columns={**clips.columns, **columns}))

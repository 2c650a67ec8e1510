"""Worlds whose clips bring a triple of sentences each, for supervised training of sentence embeddings beside their own.

    load_data(NLIConfig(WorldConfig(), WorldConfig(seed=1)))  # triples of scenes: nothing is fetched
    load_data(NLIConfig(WorldConfig(), "nli"))                # SNLI and MNLI

The sentences have nothing to do with the clips: they only come at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pullpush.cache import content_key
from pullpush.data.banks import create_bank
from pullpush.data.clips import Clips, Config, StoredClips, World
from pullpush.data.entailment import Statement, Triple, holds, triples
from pullpush.data.held_out import HeldOutConfig
from pullpush.data.lexicon import LexiconConfig
from pullpush.data.nli_corpora import located, nli_corpus
from pullpush.data.world import WorldConfig, draw_scenes
from pullpush.errors import SettingError

__all__ = ["NLIConfig", "Statement", "Triple", "holds", "nli_corpus", "scene_triples", "triples", "with_triples"]

Scenes = WorldConfig | HeldOutConfig | LexiconConfig


@dataclass(frozen=True)
class NLIConfig:
    """Any data, with a triple of sentences beside each clip.

    data: the world; sentences: a world of scenes, whose training scenes make a triple each (only its events and sizes
    count: nothing is rendered), or a corpus: "snli", "mnli", "nli" (see `nli_corpora.nli_corpus`); n: most triples,
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

    Raises:
        SettingError: there is no triple.
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

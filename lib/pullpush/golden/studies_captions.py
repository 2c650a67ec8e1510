"""Probes of rewriters that ask no model: what becomes of some captions, copy by copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pullpush.data.clips import StoredClips
from pullpush.data.language.vocabulary import load_events
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import write_captions
from pullpush.data.store import Waveforms
from pullpush.golden.compare import Values
from pullpush.rewriting import create
from pullpush.rewriting.grammar import SceneRewriter
from pullpush.rewriting.prompts import Prompted, Question, cleaned
from pullpush.rewriting.synonyms import inflected

TOLD = ("First a frog croaks, then rain falls.", "“A bell” rings, softly.", "Rain", "on a roof rain drums; wind, too")
SAID = ('Caption: "A bell rings."\nI hope this helps!', "\n  rain falls  ", "English caption: «wind»", "caption")
LEMMAS = ("buzz", "cry", "play", "whine", "hum", "agree", "die", "fix", "bark")


@dataclass(frozen=True)
class Echo(Prompted):
    """Answers with the end of the question."""

    def answers(self, questions: Sequence[Question]) -> list[str]:
        """See `Prompted`."""
        asked = [f"Caption: {one.number} {one.prompt[10:60]} … {one.prompt[-40:]}" for one in questions]
        return [text.replace("\n", " ") for text in asked]


def rewriting() -> Values:
    """Words that are left out, scenes that are told otherwise and merged; what models are asked, and how answers are
    read.
    """
    deletion = create("deletion")
    both = create("chain", rewriters=(deletion, create("deletion", p=1.0, seed=1)))
    either = create("one-of", rewriters=(create("deletion", p=0.0), create("deletion", p=1.0)), seed=2)
    simple = {"deletion": deletion, "chain": both, "one-of": either, "asked": Echo(seed=1)}
    values: dict[str, Any] = {
        name: [each.rewrite(TOLD, number=copy) for copy in (0, 1)] for name, each in simple.items()
    }
    events, clips = load_events(), _scenes()
    told = [texts[0] for texts in clips.captions("eng")]
    ways = {"grammar": SceneRewriter(), "few words": SceneRewriter(("deu",), vocabulary="narrow", skew=2.0)}
    for name, way in ways.items():
        rewriter = way.of(clips, "eng", events)
        values[name] = [rewriter.rewrite(told, number=copy) for copy in (0, 1)]
        values[f"{name}, merged"] = rewriter.merge(told[:2], told[2:4])
    values["asked, merged"] = Echo().merge(TOLD[:1], TOLD[1:2])
    values["cleaned"] = [cleaned(text) for text in SAID]
    values["inflected"] = [inflected(lemma, ending) for lemma in LEMMAS for ending in ("", "s", "ing")]
    return values


def _scenes() -> StoredClips:
    """Single events, two at once and two in turn, with two captions each in every language."""
    scenes = [
        Scene((Sound(2, 0, 0.3, far=True),), "single", 9.0, 2.0),
        Scene((Sound(7, 0, 0.0), Sound(11, 0, 0.2)), "overlap", None, 2.0),
        Scene((Sound(20, 0, 0.0, repeats=3),), "single", None, 2.0),
        Scene((Sound(30, 0, 0.1),), "single", 3.0, 2.0),
        Scene((Sound(41, 0, 0.0), Sound(5, 0, 1.0)), "sequence", None, 2.0),
    ]
    count = len(scenes)
    silence = Waveforms(np.zeros(count, np.int16), np.arange(1, count + 1))
    write = partial(write_captions, load_events(), 2, 0)
    return StoredClips("probe", "probe", silence, np.arange(count), {"scene": scenes}, write)

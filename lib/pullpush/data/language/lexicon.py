"""The same clips told in fewer words, or in the same words with a few of them nearly always: worlds of captions.

A configuration of scenes is wrapped, so that its clips keep their names, their audio and their truth:

    load_data(LexiconConfig(WorldConfig(), "narrow", skew=1.0))

A *narrow* vocabulary names each event by its label alone and has `FORMS` ways to tell a scene. A *skew* s draws every
choice of words, clauses and forms by Zipf's law, the option of rank r in proportion to 1/r^s instead of evenly: a large
corpus keeps its words, and few of them make up more of it. Ranks are by falling length, since long ways to say a thing
have the common words ("you can hear the … of a …") and short ones little else than the names of sounds.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any

from pullpush.data.clips import World
from pullpush.data.language import grammar as telling
from pullpush.data.language.grammar import CASES, Form, Grammar, captions, load_grammar, phrases_in
from pullpush.data.language.vocabulary import Clause, Event, Phrases
from pullpush.data.language.word_counts import words
from pullpush.data.languages import check_language
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import WorldConfig, retold
from pullpush.errors import unknown

VOCABULARIES = ("rich", "narrow")
FORMS = 2  # of a narrow vocabulary, for each relation
CLAUSE, NOUN = 3, 5  # words that most have: "a frog croaks", "the croaking of a frog"
SOUNDS = "can be heard"  # what all events do in a narrow English: it fits one and many


@dataclass(frozen=True)
class LexiconConfig:
    """In which words the scenes of a world are told, in all its splits.

    scenes: the world; vocabulary: "rich", all that the grammar has, or "narrow"; skew: s ≥ 0, the exponent of Zipf's
    law. "rich" without skew are the grammar's own captions, to the letter.
    """

    scenes: WorldConfig | HeldOutConfig
    vocabulary: str = "rich"
    skew: float = 0.0

    def __post_init__(self) -> None:
        if self.vocabulary not in VOCABULARIES:
            raise unknown("vocabulary", self.vocabulary, VOCABULARIES)
        if not 0 <= self.skew < float("inf"):
            raise ValueError(f"skew must be a number from 0, got {self.skew}")

    def load(self) -> World:
        """The world with its captions in these words.

        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> LexiconConfig(small, "narrow").load().singles.captions("eng")[0][:2]
        ['An alarm clock can be heard.', 'You can hear an alarm clock.']
        """
        if self.vocabulary == "rich" and not self.skew:
            tell: Any = captions
        else:
            tell = partial(worded_captions, vocabulary=self.vocabulary, skew=self.skew)
        return retold(self, self.scenes, tell, "data/lexicon", lambda words: [words, self.vocabulary, self.skew])


def worded_captions(
    scene: Scene,
    events: Sequence[Event],
    *,
    language: str,
    vocabulary: str = "rich",
    skew: float = 0.0,
    n: int = 5,
    seed: int = 0,
) -> list[str]:
    """`n` captions of a scene, each drawn for itself, so that some may be equal: unlike those of `grammar.captions`.

    Were they all different, the second and third choices would come up in every scene, and no word would be rare.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    grammar = load_grammar(check_language(language))
    phrases = [phrases_in(events[sound.event], language) for sound in scene.sounds]
    forms = telling._forms(language, scene.relation, len(scene.sounds))
    if vocabulary == "narrow":
        grammar, forms = _narrow_grammar(language), tuple(forms[:FORMS])  # which are sentences
        phrases = [narrow_phrases(several, language) for several in phrases]
    dice = _ZipfDice(telling._entropy(scene, language, seed), skew)
    texts: list[str] = []
    while len(texts) < n:  # every language has forms that fit all phrases
        text = telling._caption(dice.pick(forms), scene, phrases, grammar, dice)
        texts += [text] if text is not None else []
    return texts


# ------------------------------------------------------------------------------------------------------------ narrow


def narrow_phrases(phrases: Phrases, language: str) -> Phrases:
    """The one way to name an event: in English its label, in other languages its first clause and noun."""
    if language != "eng":
        return replace(phrases, clauses=phrases.clauses[:1], nouns=phrases.nouns[:1])
    named = _with_article(phrases)
    return replace(phrases, clauses=(Clause(named, SOUNDS),), nouns=(named,))


def _with_article(phrases: Phrases) -> str:
    """The English label as a noun phrase; "thunder", which the phrases name without an article, has none."""
    said = " ; ".join([*phrases.nouns, *(f"{clause.subject} {clause.verb}" for clause in phrases.clauses)])
    label = rf"\b{re.escape(phrases.label)}\b"
    if re.search(label, said) and not re.search(rf"\b(a|an|the) {label}", said):
        return phrases.label
    return f"{'an' if phrases.label[0] in 'aeiou' else 'a'} {phrases.label}"


@cache
def _narrow_grammar(language: str) -> Grammar:
    """The grammar with the first of its ways to mention distance, repetition and noise."""
    whole = load_grammar(language)
    return replace(
        whole,
        adverbs={told: ways[:1] for told, ways in whole.adverbs.items()},
        nouns={told: ways[:1] for told, ways in whole.nouns.items()},
        noise=whole.noise[:1],
        noise_titles=whole.noise_titles[:1],
    )


# -------------------------------------------------------------------------------------------------------------- skew


class _ZipfDice(telling._Dice):
    """Choices in which the option of rank r, from 1 for the longest, has a weight of 1/r^skew.

    To mention what a caption may leave out is the second of two options.
    """

    def __init__(self, entropy: int, skew: float) -> None:
        super().__init__(entropy)
        self._skew = skew

    def chance(self, probability: float) -> bool:
        mention = probability * 2**-self._skew
        return self._draw() < mention / (mention + 1 - probability)

    def pick(self, options: Sequence[Any]) -> Any:
        if len(options) == 1:
            return options[0]
        rank = bisect(_shares(len(options), self._skew), self._draw())
        return sorted(options, key=_length, reverse=True)[rank]  # equal lengths keep their order


@cache
def _shares(count: int, skew: float) -> tuple[float, ...]:
    """The cumulative shares of all ranks but the last."""
    sums = tuple(accumulate(rank**-skew for rank in range(1, count + 1)))
    return tuple(part / sums[-1] for part in sums[:-1])


@cache
def _length(option: Form | Clause | str) -> int:
    """How many words an option has, with what most phrases have in the slots of a form."""
    if isinstance(option, str):
        return len(words(option))
    if isinstance(option, Clause):
        return len(words(f"{option.subject} {option.verb}"))
    return sum(
        _length(piece) if isinstance(piece, str) else NOUN if piece[1] in CASES else CLAUSE for piece in option.pieces
    )

"""Other captions of the same clips: translations of each other, fewer words, or few words nearly always.

A configuration of scenes is wrapped, so that its clips keep their names, their audio and their truth:

    load_data(WordingConfig(WorldConfig()))                      # aligned captions
    load_data(LexiconConfig(WorldConfig(), "narrow", skew=1.0))

*Aligned* captions are translations of each other: the same way, words and mentions in every language. The captions of
grammar.py are retold: each language chooses by itself how to describe a scene, as annotators would. Where a study asks
what translation does (Gap, Dis and the consistency of ranks are about translations), the choices are drawn once for all
languages: the way from `aligned.yaml`, each event's first clause or noun phrase, what is mentioned. Repetition is in
clauses alone: German and English cannot say it of every noun phrase.

A *narrow* vocabulary names each event by its label alone and has `NARROW_FORMS` ways to describe a scene. A *skew* s
draws every choice of words, clauses and forms by Zipf's law, the option of rank r in proportion to 1/r^s instead of
evenly: a large corpus keeps its words, and few of them make up more of it. Ranks are by falling length, since long ways
to say a thing have the common words ("you can hear the … of a …") and short ones little else than the names of sounds.
"""

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from pullpush.checks import check_count, check_number
from pullpush.data.clips import World
from pullpush.data.draws import number
from pullpush.data.language.grammar import (
    CASES,
    KINDS,
    P_MENTION,
    Dice,
    Form,
    Grammar,
    article_of,
    caption_of,
    captions,
    clause_in,
    create_form,
    distinct,
    entropy_of,
    forms_of,
    is_long,
    load_grammar,
    phrases_in,
    sentence,
)
from pullpush.data.language.vocabulary import Clause, Event, Phrases, words
from pullpush.data.languages import LANGUAGES, read_table
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import WorldConfig, retold
from pullpush.errors import check_known

TABLE = Path(__file__).with_name("aligned.yaml")
TITLE = "title"
FORMS = ("retold", "aligned")


@dataclass(frozen=True)
class Choice:
    """How one caption tells a scene, in any language.

    way: number among those that fit the scene; order: in which the sounds are named; far, often: of each sound of the
    scene, whether that is mentioned; noise: likewise of the noise.
    """

    way: int
    order: tuple[int, ...]
    far: tuple[bool, ...]
    often: tuple[bool, ...]
    noise: bool


def aligned_captions(scene: Scene, events: Sequence[Event], *, language: str, n: int = 5, seed: int = 0) -> list[str]:
    """`n` captions of a scene, caption by caption translations of those in every other language.

    They differ as long as there are that many ways to tell the scene.
    """
    check_known("language of aligned captions", language, LANGUAGES)
    rng = np.random.default_rng(number((scene, seed), size=16))
    ways = rng.permutation(len(_ways(scene.relation, len(scene.sounds)))).tolist()

    def draw(attempt: int) -> tuple[str, Choice]:
        """A choice by what English says, since choices that it tells alike are one."""
        choice = _choose(scene, ways[attempt % len(ways)], rng)
        return _tell(choice, scene, events, LANGUAGES[0]), choice

    return [_tell(choice, scene, events, language) for choice in distinct(draw, n)]


@cache
def load_ways() -> Mapping[str, tuple[Mapping[str, str], ...]]:
    """Relation → its ways, each a form by language."""
    return {relation: tuple(ways) for relation, ways in read_table(TABLE).items()}


def _ways(relation: str, count: int) -> tuple[int, ...]:
    """The ways that tell `count` sounds in this relation, as rows of the table."""
    return tuple(row for row, way in enumerate(load_ways()[relation]) if is_long(way[LANGUAGES[0]]) == (count > 2))


def _choose(scene: Scene, way: int, rng: np.random.Generator) -> Choice:
    """Draw what is mentioned, and in which order; the same number of draws whatever the scene is like."""
    count = len(scene.sounds)
    order = tuple(rng.permutation(count).tolist())
    coins = (rng.random((2, count)) < P_MENTION).tolist()
    noise = bool(rng.random() < P_MENTION)
    return Choice(
        way,
        order if scene.relation == "overlap" else tuple(range(count)),
        tuple(sound.far and coin for sound, coin in zip(scene.sounds, coins[0], strict=True)),
        tuple(sound.repeats > 1 and coin for sound, coin in zip(scene.sounds, coins[1], strict=True)),
        scene.snr_db is not None and noise,
    )


@cache
def _form(relation: str, row: int, count: int, language: str) -> Form:
    way = load_ways()[relation][row]
    return create_form(way[language], count, title=bool(way.get(TITLE)))


def _tell(choice: Choice, scene: Scene, events: Sequence[Event], language: str) -> str:
    """The scene in one language."""
    grammar = load_grammar(language)
    row = _ways(scene.relation, len(scene.sounds))[choice.way]
    form = _form(scene.relation, row, len(scene.sounds), language)
    parts = []
    for piece in form.pieces:
        if isinstance(piece, str):
            parts.append(piece)
            continue
        sound = choice.order[piece[0]]
        phrases = phrases_in(events[scene.sounds[sound].event], language)
        parts.append(_phrase(phrases, piece[1], choice.far[sound], choice.often[sound], grammar))
    noise = (grammar.noise_titles if form.title else grammar.noise)[0] if choice.noise else ""
    return sentence("".join(parts), noise, grammar)


def _phrase(phrases: Phrases, kind: str, far: bool, often: bool, grammar: Grammar) -> str:
    """One slot filled: a clause, a noun phrase in its case, or what agrees with one."""
    noun = phrases.nouns[0]
    if kind in grammar.agree:
        return grammar.agree[kind].get(article_of(noun)[0].lower(), next(iter(grammar.agree[kind].values())))
    if kind in CASES:
        article, rest = article_of(noun)
        noun = grammar.nouns["far"][0].format(noun=noun, article=article, rest=rest) if far else noun
        return CASES[kind](noun) or noun
    clause = phrases.clauses[0]
    adverb = grammar.adverbs.get("both" if far and often else "far" if far else "often" if often else "plain", ("",))[0]
    return clause_in(clause, adverb, kind, grammar)


@dataclass(frozen=True)
class WordingConfig:
    """How the scenes of a world are told.

    scenes: the world; form: "retold" (each language on its own, see grammar.py) or "aligned" (translations of each
    other).
    """

    scenes: WorldConfig | HeldOutConfig
    form: str = "aligned"

    def __post_init__(self) -> None:
        check_known("form of captions", self.form, FORMS)

    def load(self) -> World:
        is_aligned = self.form == "aligned"
        about = [self.form, KINDS, load_ways() if is_aligned else None]
        tell = aligned_captions if is_aligned else captions
        return retold(self, self.scenes, tell, "data/wording", lambda words: [words, *about])


VOCABULARIES = ("rich", "narrow")
NARROW_FORMS = 2  # of a narrow vocabulary, for each relation
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
        check_known("vocabulary", self.vocabulary, VOCABULARIES)
        check_number("skew", self.skew, least=0)

    def load(self) -> World:
        tell = partial(worded_captions, vocabulary=self.vocabulary, skew=self.skew)
        return retold(self, self.scenes, tell, "data/lexicon", lambda words: [words, self.vocabulary, self.skew])


def is_plain(vocabulary: str, skew: float) -> bool:
    """Whether captions are those of `grammar.captions`."""
    return vocabulary == "rich" and not skew


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
    """`n` captions of a scene: "rich" without skew those of `grammar.captions`, else each drawn for itself, so that
    some may be equal. Were all different, second and third choices would come up in every scene, and no word be rare.
    """
    if is_plain(vocabulary, skew):
        return captions(scene, events, language=language, n=n, seed=seed)
    check_count("n", n)
    grammar = load_grammar(language)
    phrases = [phrases_in(events[sound.event], language) for sound in scene.sounds]
    forms = forms_of(language, scene.relation, len(scene.sounds))
    if vocabulary == "narrow":
        grammar, forms = _narrow_grammar(language), tuple(forms[:NARROW_FORMS])  # which are sentences
        phrases = [narrow_phrases(several, language) for several in phrases]
    dice = _ZipfDice(entropy_of(scene, language, seed), skew)
    texts: list[str] = []
    while len(texts) < n:  # every language has forms that fit all phrases
        text = caption_of(dice.pick(forms), scene, phrases, grammar, dice)
        texts += [text] if text is not None else []
    return texts


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


class _ZipfDice(Dice):
    """Choices in which rank r, from 1 for the longest, has weight 1/r^skew; mentioning is the second of two options."""

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

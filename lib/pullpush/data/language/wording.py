"""The same clips told otherwise: `load_data(WordingConfig(WorldConfig()))` has aligned captions of the same scenes.

Aligned captions are translations of each other: the same way, words and mentions in every language. The captions of
grammar.py are retold: each language chooses on its own how to tell a scene, as annotators would. Where a study asks
what translation does (Gap, Dis and the consistency of ranks are about translations), the choices are drawn once for all
languages here: the way from `aligned.yaml`, each event's first clause or noun phrase, what is mentioned. Repetition is
told by clauses alone: German and English cannot tell it of every noun phrase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pullpush.data.clips import World
from pullpush.data.draws import number
from pullpush.data.language.grammar import (
    CASES,
    KINDS,
    P_MENTION,
    Form,
    Grammar,
    article_of,
    captions,
    clause_in,
    create_form,
    distinct,
    is_long,
    load_grammar,
    phrases_in,
    sentence,
)
from pullpush.data.language.vocabulary import Event, Phrases
from pullpush.data.languages import LANGUAGES, VocabularyError, read_table
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import WorldConfig, retold
from pullpush.errors import unknown

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
    if language not in LANGUAGES:
        raise unknown("language of aligned captions", language, LANGUAGES)
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
    table = read_table(TABLE)
    for relation, ways in table.items():
        for row, way in enumerate(ways):
            where = f"{TABLE.name}: {relation} {row + 1}"
            if missing := set(LANGUAGES) - set(way):
                raise VocabularyError(f"{where}: missing {sorted(missing)}")
            parts = {code: _parts(way[code]) for code in LANGUAGES}
            for code, part in parts.items():
                if part != parts[LANGUAGES[0]]:
                    raise VocabularyError(f"{where}: {code} tells {part}, {LANGUAGES[0]} {parts[LANGUAGES[0]]}")
    return {relation: tuple(ways) for relation, ways in table.items()}


def _parts(text: str) -> tuple[tuple[int, bool], ...]:
    """Which sounds a form tells, in their order, and whether by noun phrases."""
    pieces = create_form(text, 3 if is_long(text) else text.count("{"), title=False).pieces
    told = [(piece[0], piece[1] in CASES) for piece in pieces if not isinstance(piece, str) and _tells(piece[1])]
    return tuple(sorted(told))


def _tells(kind: str) -> bool:
    """Whether a slot names a sound; others agree with one ("se oye", "se oyen")."""
    return kind in CASES or any(kind in load_grammar(code).orders for code in LANGUAGES)


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
        if self.form not in FORMS:
            raise unknown("form of captions", self.form, FORMS)

    def load(self) -> World:
        """The world with its captions written in this way.

        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> world = WordingConfig(small).load()
        >>> [world.singles.captions(code)[0][0] for code in ("eng", "deu")]
        ['In this recording, an alarm clock beeps.', 'In dieser Aufnahme piept ein Wecker.']
        """
        is_aligned = self.form == "aligned"
        about = [self.form, KINDS, load_ways() if is_aligned else None]
        tell = aligned_captions if is_aligned else captions
        return retold(self, self.scenes, tell, "data/wording", lambda words: [words, *about])

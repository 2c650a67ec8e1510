"""The same clips told otherwise: aligned captions, sentences or titles alone; and pairs of worlds for transfer.

A configuration of scenes is wrapped, so that its clips keep their names and their audio, and only the words are others:

    load_data(WordingConfig(WorldConfig(), form="aligned"))

Aligned captions are translations of each other: the same way, words and mentions in every language. The captions of
grammar.py are retold: each language chooses on its own how to tell a scene, as annotators would. Where a study asks
what translation does (Gap, Dis and the consistency of ranks are about translations), the choices are drawn once for all
languages here: the way from `aligned.yaml`, each event's first clause or noun phrase, what is mentioned. Repetition is
told by clauses alone: German and English cannot tell it of every noun phrase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from pullpush.cache import content_key
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.draws import number
from pullpush.data.language.grammar import (
    CASES,
    KINDS,
    P_MENTION,
    PATIENCE,
    Form,
    Grammar,
    article_of,
    captions,
    connective,
    create_form,
    is_long,
    load_grammar,
    phrases_in,
)
from pullpush.data.language.vocabulary import Event, Phrases
from pullpush.data.languages import LANGUAGES, VocabularyError, read_table
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.golden import versions

TABLE = Path(__file__).with_name("aligned.yaml")
TITLE = "title"
FORMS = ("retold", "aligned")
DIFFERENCES = ("mixing", "noise", "wording")
MIXING = {"p_overlap": 0.8, "p_far": 0.4}  # of the second of two worlds; the first has the defaults
NOISE = {"p_noise": 1.0, "snr_db": (0.0, 10.0)}


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

    Raises:
        UnknownNameError: the ways are not translated into this language, or an event has no phrases in it.
        ValueError: n < 1.

    >>> from pullpush.data.scenes.scene import Sound
    >>> from pullpush.data.scenes.synthetic import synthetic_events
    >>> scene = Scene((Sound(1, 0, onset=0.0), Sound(9, 0, onset=1.0)), "sequence", None, 3.0)
    >>> [aligned_captions(scene, synthetic_events(), language=code, n=1)[0] for code in ("eng", "deu")]
    ['A bell rings, then a siren wails.', 'Eine Glocke läutet, dann heult eine Sirene.']
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if language not in LANGUAGES:
        raise unknown("language of aligned captions", language, LANGUAGES)
    rng = np.random.default_rng(number((scene, seed), size=16))
    ways = rng.permutation(len(_ways(scene.relation, len(scene.sounds)))).tolist()
    choices: dict[str, Choice] = {}  # by what English says: choices that it tells alike are one
    attempt = fruitless = 0
    while len(choices) < n and fruitless < PATIENCE:
        choice = _choose(scene, ways[attempt % len(ways)], rng)
        text = _tell(choice, scene, events, LANGUAGES[0])
        attempt += 1
        fruitless = fruitless + 1 if text in choices else 0
        choices.setdefault(text, choice)
    different = [_tell(choice, scene, events, language) for choice in choices.values()]
    return [different[i % len(different)] for i in range(n)]


@cache
def load_ways() -> Mapping[str, tuple[Mapping[str, str], ...]]:
    """Relation → its ways, each a form by language.

    Raises:
        VocabularyError: a way lacks a language, or its languages do not tell the same sounds by the same kinds of
            phrases.
    """
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
    text = "".join(parts)
    if choice.noise:
        pattern = (grammar.noise_titles if form.title else grammar.noise)[0]
        text = pattern.format(s=text, te=connective(text))
    text = grammar.contract(text)
    return text[0].upper() + text[1:] + grammar.end


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
    words = {"S": clause.subject, "V": clause.verb, "A": adverb}
    text = grammar.space.join(word for letter in grammar.orders[kind] if (word := words[letter]))
    return connective(text) if kind == "te" else text


@dataclass(frozen=True)
class WordingConfig:
    """How the scenes of a world are told.

    scenes: the world; form: "retold" (each language on its own, see grammar.py) or "aligned" (translations of each
    other, see aligned.py); kinds: of retold captions, "sentences" and "titles".
    """

    scenes: WorldConfig | HeldOutConfig
    form: str = "aligned"
    kinds: tuple[str, ...] = KINDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(self.kinds))
        if self.form not in FORMS:
            raise unknown("form of captions", self.form, FORMS)
        if not self.kinds or not set(self.kinds) <= set(KINDS):
            raise ValueError(f"kinds must be some of {KINDS}, got {self.kinds}")
        if self.form == "aligned" and self.kinds != KINDS:
            raise ValueError(f"aligned captions have both kinds, got {self.kinds}")

    def load(self) -> World:
        """The world with its captions written in this way.

        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> world = WordingConfig(small).load()
        >>> [world.singles.captions(code)[0][0] for code in ("eng", "deu")]
        ['In this recording, an alarm clock beeps.', 'In dieser Aufnahme piept ein Wecker.']
        """
        world, scenes = self.scenes.load(), self.scenes
        tell = tell_aligned if self.form == "aligned" else partial(tell_retold, self.kinds)
        write = partial(tell, world.bank.events, scenes.captions_per_scene, scenes.seed)
        splits = {
            name: replace(cast(StoredClips, clips), write=write, _captions={})  # as scenes are stored
            for name, clips in world.splits.items()
        }
        ways = load_ways() if self.form == "aligned" else None
        words = content_key([versions("data/wording"), world.words, self.form, self.kinds, ways])
        return World(self, splits, words, world.bank, parts=(*world.parts, "data/wording"))


def tell_aligned(events: Sequence[Event], each: int, seed: int, columns: Columns, language: str) -> list[list[str]]:
    """`each` captions of every scene in one language; see `aligned.aligned_captions`."""
    return [aligned_captions(scene, events, language=language, n=each, seed=seed) for scene in columns["scene"]]


def tell_retold(
    kinds: Sequence[str], events: Sequence[Event], each: int, seed: int, columns: Columns, language: str
) -> list[list[str]]:
    """`each` captions of every scene in one language, of some kinds of forms; see `grammar.captions`."""
    return [captions(scene, events, language=language, n=each, seed=seed, kinds=kinds) for scene in columns["scene"]]


def transfer_pair(scenes: WorldConfig, *, differ: Sequence[str] = DIFFERENCES) -> dict[str, WordingConfig]:
    """Two worlds of the same events to train on one and test on the other.

    A is mixed as `scenes` and told in sentences; B overlaps more and is farther away (differ: "mixing"), is always
    noisy ("noise"), and is told in noun phrases ("wording"), of these as many as `differ` names. Both deal combinations
    of events to their splits alike, so that what A tests was not learnt from B, and hold the same sets of events,
    clip by clip, as far as mixing leaves them.

    Raises:
        UnknownNameError: there is no such difference.

    >>> pair = transfer_pair(WorldConfig("synthetic"), differ=["noise"])
    >>> pair["B"].scenes.scene.p_noise, pair["B"].kinds
    (1.0, ('sentences',))
    """
    for name in differ:
        if name not in DIFFERENCES:
            raise unknown("difference of worlds", name, DIFFERENCES)
    other: dict[str, Any] = (MIXING if "mixing" in differ else {}) | (NOISE if "noise" in differ else {})
    second = replace(scenes, scene=replace(scenes.scene, **other))
    kinds = KINDS[1:] if "wording" in differ else KINDS[:1]
    return {
        "A": WordingConfig(scenes, "retold", KINDS[:1]),
        "B": WordingConfig(second, "retold", kinds),
    }

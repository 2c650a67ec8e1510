"""English sentences that follow from a scene, and sentences that it contradicts: triples for training on inference.

A sentence is drawn as a small graph, a *statement*: which events it names, by name or by a general word ("a bird"), and
in which relation. Whether it follows is decided on graphs, by `holds`; `grammar.captions` puts it into words.
Premises may mention distance, repetition and noise; the others leave them out, so that they follow from the premise's
words as well. Statements are complete: a sound that a scene does not hold, is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from pullpush.data.draws import number
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import Event, parse_phrases
from pullpush.data.scenes.scene import Scene, Sound

LANGUAGE = "eng"  # of the general words, and of what says that sounds are heard together
TRIES = 5  # captions of a scene to choose from: at least three are clear (see `_TOGETHER`), and all scenes have as many

# What every event of a category is, and is heard as; "animal" and "thing" are of several categories.
GENERAL = {
    "amphibian": (["an amphibian | calls", "an amphibian | can be heard"], "the call of an amphibian"),
    "animal": (["an animal | makes a sound", "an animal | can be heard"], "the sound of an animal"),
    "bird": (["a bird | calls", "a bird | can be heard"], "the call of a bird"),
    "household": (["a household sound | can be heard", "a household noise | can be heard"], "a household sound"),
    "insect": (["an insect | makes a sound", "an insect | can be heard"], "the sound of an insect"),
    "instrument": (["a musical instrument | sounds", "a musical instrument | plays"], "the sound of an instrument"),
    "mammal": (["a mammal | calls", "a mammal | can be heard"], "the call of a mammal"),
    "sweep": (["a tone | changes its pitch", "a changing tone | can be heard"], "the glide of a tone"),
    "tool": (["a tool | makes a sound", "a tool | can be heard"], "the sound of a tool"),
    "vehicle": (["a vehicle | makes a sound", "a vehicle | can be heard"], "the sound of a vehicle"),
}
ANIMALS = ("amphibian", "bird", "insect", "mammal")
# False wherever no event of theirs is heard; but a vacuum cleaner may be called a tool, and a siren changes its pitch.
FALSIFIABLE = ("amphibian", "animal", "bird", "insect", "instrument", "mammal")
UNHEARD = ("sonar",)  # a vehicle's, but no vehicle is heard
# One is the other, or a part of it, or is often called so: neither is said to be absent where the other is heard.
KIN = (
    {"bull", "cow"},
    {"caribou", "doe", "stag"},
    {"cymbal", "drum_kit", "floor_tom"},
    {"dolphin", "orca", "whale"},
    {"drake", "duck"},
    {"hammer", "metal_mallet"},
    {"hen", "rooster"},
    {"lamb", "sheep"},
)
# "A and B" leaves open whether they are heard together.
_TOGETHER = re.compile(r"\b(while|as|at the same time|together|at once)\b", re.IGNORECASE)


class Triple(NamedTuple):
    """Three sentences: the second follows from the first, the third contradicts it."""

    premise: str
    entailment: str
    contradiction: str


@dataclass(frozen=True)
class Statement:
    """What a sentence says: names of events or general words, in order, and their relation (see `scene.RELATIONS`)."""

    relation: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if (len(self.names) == 1) != (self.relation == "single"):
            raise ValueError(f"{len(self.names)} name(s) cannot have the relation {self.relation!r}")


def words_for(event: Event) -> tuple[str, ...]:
    """The general words that are true of an event, from near to far."""
    known = event.category in GENERAL and event.name not in UNHEARD
    return (event.category,) * known + ("animal",) * (known and event.category in ANIMALS)


def holds(scene: Statement, sentence: Statement, events: Sequence[Event], *, perhaps: bool = False) -> bool:
    """Whether a sentence is true of a scene: its names fit different sounds, in its relation and order.

    perhaps: whether it might be called true, by the names in `KIN`.
    """
    if sentence.relation not in ("single", scene.relation):
        return False
    known = {event.name: event for event in events}

    def fits(said: str, heard: str) -> bool:
        if said in (heard, *words_for(known[heard])):
            return True
        return perhaps and any({said, heard} <= kin for kin in KIN)

    places = permutations(range(len(scene.names)), len(sentence.names))
    return any(
        (sentence.relation != "sequence" or list(order) == sorted(order))
        and all(fits(said, scene.names[place]) for said, place in zip(sentence.names, order, strict=True))
        for order in places
    )


def triples(scenes: Sequence[Scene], events: Sequence[Event], *, seed: int = 0) -> list[Triple]:
    """One triple for every scene; none for a scene that nothing can be said to contradict.

    What follows: fewer of the events, one of them by a general word, or all of them retold. What contradicts: another
    event (of another category, or of the same one) or general word in place of one, another order or relation. Both are
    drawn evenly from what the scene allows; the same for the same scenes and seed on every machine.

    Raises:
        UnknownNameError: an event has no English phrases.

    >>> from pullpush.data.banks.synthetic import synthetic_events
    >>> scene = Scene((Sound(1, 0, onset=0.0), Sound(7, 0, onset=1.0)), "sequence", None, 3.0)
    >>> for sentence in triples([scene], synthetic_events())[0]:
    ...     print(sentence)
    A bell is ringing and then rain is pattering.
    After a bell rings, rain patters.
    The buzzing of an electric shaver, then the patter of rain.
    """
    table = [*events, *general_events()]
    found = (_triple(scene, table, len(events), number(("nli", seed, i))) for i, scene in enumerate(scenes))
    return [triple for triple in found if triple is not None]


@cache
def general_events() -> tuple[Event, ...]:
    """The general words as if they were events, so that the grammar can tell them."""
    return tuple(
        Event(word, word, (), {LANGUAGE: parse_phrases({"clauses": clauses, "nouns": [noun], "label": word})})
        for word, (clauses, noun) in GENERAL.items()
    )


def statement(scene: Scene, events: Sequence[Event]) -> Statement:
    """What can be said of a scene at most."""
    return Statement(scene.relation, tuple(events[event].name for event in scene.events))


# ---------------------------------------------------------------- what to say


def _triple(scene: Scene, table: Sequence[Event], count: int, seed: int) -> Triple | None:
    """One triple; `table`: `count` events, and the general words."""
    rng, events, truth = np.random.default_rng(seed), table[:count], statement(scene, table)

    def choose(ways: dict[str, list[Statement]], is_right: Callable[[Statement], bool]) -> Statement | None:
        """A kind first, since some have many more statements; then the first of its statements that is right."""
        for kind in rng.permutation(len(ways)):
            several = list(ways.values())[kind]
            for row in rng.permutation(len(several)):
                if is_right(several[row]):
                    return several[row]
        return None

    follows = choose(_following(truth, events), lambda made: holds(truth, made, events))
    if follows is None:
        return None
    denied = choose(_contradicting(truth, follows, events), lambda made: not holds(truth, made, events, perhaps=True))
    if denied is None:
        return None
    premise = _told(scene, table, seed)
    return Triple(premise, _said(follows, table, seed + 1, premise), _said(denied, table, seed + 2, premise))


def _following(truth: Statement, events: Sequence[Event]) -> dict[str, list[Statement]]:
    """Statements that may follow, by kind."""
    whole = range(len(truth.names))
    fewer = [_part(truth, [place]) for place in whole if len(whole) > 1]
    fewer += [_part(truth, [place for place in whole if place != left]) for left in whole if len(whole) > 2]
    known = {event.name: event for event in events}
    general = [
        _renamed(part, place, word)
        for part in (truth, *fewer)
        for place, name in enumerate(part.names)
        for word in words_for(known[name])
        if sum(word in words_for(known[other]) for other in part.names) == 1  # not "a bird calls while a crow caws"
    ]
    return {"retold": [truth], "fewer": fewer, "general": general}


def _contradicting(truth: Statement, said: Statement, events: Sequence[Event]) -> dict[str, list[Statement]]:
    """Statements that may contradict, by kind; `said` follows, and those with other names are made of it."""
    known = {event.name: event for event in events}
    heard = {known[name].category for name in truth.names}
    words = [word for event in events for word in words_for(event) if word in FALSIFIABLE]  # as often as they are true
    places = range(len(said.names))
    others = [(known[name].category in heard, name) for name in known if name not in truth.names]
    turned = [Statement(truth.relation, order) for order in permutations(truth.names)] * (truth.relation == "sequence")
    switched = {"sequence": ["overlap"], "overlap": ["sequence"], "single": []}[truth.relation]
    return {
        "other": [_renamed(said, place, name) for place in places for near, name in others if not near],
        "near": [_renamed(said, place, name) for place in places for near, name in others if near],
        "general": [_renamed(said, place, word) for place in places for word in words],
        "order": turned,
        "relation": [Statement(relation, truth.names) for relation in switched],
    }


def _part(truth: Statement, places: Sequence[int]) -> Statement:
    """Some of the events, in their order."""
    return Statement("single" if len(places) == 1 else truth.relation, tuple(truth.names[place] for place in places))


def _renamed(said: Statement, place: int, name: str) -> Statement:
    return Statement(said.relation, (*said.names[:place], name, *said.names[place + 1 :]))


# ---------------------------------------------------------------- how to say it


def _said(said: Statement, table: Sequence[Event], seed: int, premise: str) -> str:
    """A statement in words, other than the premise's."""
    place = {event.name: row for row, event in enumerate(table)}
    sounds = tuple(Sound(place[name], 0, onset=float(row)) for row, name in enumerate(said.names))
    return _told(Scene(sounds, said.relation, None, float(len(sounds))), table, seed, lambda text: text != premise)


def _told(scene: Scene, table: Sequence[Event], seed: int, allowed: Callable[[str], Any] = bool) -> str:
    """The first caption of a scene that is allowed and leaves nothing open."""
    texts: Iterator[str] = iter(captions(scene, table, language=LANGUAGE, n=TRIES, seed=seed))
    is_clear = _TOGETHER.search if scene.relation == "overlap" else bool
    return next(text for text in texts if is_clear(text) and allowed(text))

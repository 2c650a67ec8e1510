"""Probes of the languages: how each tells twenty scenes of the synthetic bank, and asks for its events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pullpush.data.language.grammar import captions, load_grammar, prompts
from pullpush.data.language.vocabulary import Event, load_events
from pullpush.data.languages import load_languages
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.synthetic import synthetic_events
from pullpush.golden.compare import Values

TOLERANCE = 0.0  # texts alone
RELATIONS = {1: ("single",), 2: ("sequence", "overlap"), 3: ("sequence", "overlap"), 4: ("sequence", "overlap")}
EACH = 3  # captions of a scene


def names() -> Collection[str]:
    """The codes of all languages, the reader's own included."""
    return load_languages().keys()


def probe(name: str) -> Values:
    """Captions of scenes that are far, repeated and noisy or not, sentences and titles; prompts; what is contracted."""
    events = _events(name)
    found: dict[str, Any] = {"prompt": load_grammar(name).prompt}
    if not events:  # a grammar alone
        return found
    found["prompts"] = prompts(events, name)
    found["asked"] = prompts(events[:2], name, "{label}?")
    every = scenes(len(events))
    for number, scene in enumerate(every):
        found[f"scene {number:02d}"] = captions(scene, events, language=name, n=EACH, seed=number)
    for kind in ("sentences", "titles"):
        told = [
            captions(scene, events, language=name, n=1, seed=7, kinds=(kind,)) for scene in scenes(len(events))[::3]
        ]
        found[kind] = [text for texts in told for text in texts]
    return found


def scenes(count: int) -> list[Scene]:
    """Scenes of `count` events that hold every relation, with and without all that captions may mention."""
    found = []
    plain = [(size, relation, 0) for size, relations in RELATIONS.items() for relation in relations]
    spoken = [(size, relation, told) for size, relation, _ in plain[:5] for told in (1, 2, 3)]
    for number, (size, relation, told) in enumerate(plain + spoken):
        sounds = tuple(
            Sound(
                (5 * number + 7 * place) % count,
                0,
                onset=float(place),
                far=told in (1, 3),
                repeats=3 if told in (2, 3) else 1,
            )
            for place in range(size)
        )
        found.append(Scene(sounds, relation, 6.0 if told == 3 or number % 4 == 1 else None, float(size + 1)))
    return found


def _events(code: str) -> Sequence[Event]:
    """The synthetic events; those of recordings, where a reader's language has words for these alone."""
    for events in (synthetic_events(), load_events()):
        if told := [event for event in events if code in event.phrases]:
            return told
    return ()

"""The events that scenes are made of, and what each is called in eight languages.

The table is curated by hand in `data/events/*.yaml`, one file per group of events; `excluded.yaml` lists the
recordings that are left out, with the reason. Adding an event is adding one entry to one of these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from pullpush.errors import PullPushError, unknown

LANGUAGES = ("eng", "fra", "deu", "spa", "nld", "cat", "jpn", "zho")  # ISO 639-3; the eight of the ATRI paper

SEPARATOR = "|"  # "a frog | croaks": the grammar needs to know where the subject ends
EXCLUDED = "excluded.yaml"


@dataclass(frozen=True)
class Clause:
    """One way to say that something sounds: "a frog" and "croaks"."""

    subject: str
    verb: str


@dataclass(frozen=True)
class Phrases:
    """What one event is called in one language.

    clauses: at least two; nouns: phrases such as "the croaking of a frog"; label: the bare name, for zero-shot prompts.
    """

    clauses: tuple[Clause, ...]
    nouns: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Event:
    """A kind of sound: its recordings (stamp ids, "animals/amphibians/frog") and its phrases by language.

    category: one English word; events that share it are near misses of each other.
    """

    name: str
    category: str
    recordings: tuple[str, ...]
    phrases: dict[str, Phrases]


class VocabularyError(PullPushError, ValueError):
    """The table of events is malformed; the message names the file, the event and the language."""


def check_language(code: str) -> str:
    """Return `code` if captions can be written in it; raise `UnknownNameError` with the known codes otherwise."""
    if code not in LANGUAGES:
        raise unknown("language", code, LANGUAGES)
    return code


@cache
def load_events() -> tuple[Event, ...]:
    """The curated events, sorted by name. Raises `VocabularyError` where the table is malformed."""
    return parse_events({path.name: _read(path) for path in _tables() if path.name != EXCLUDED})


@cache
def load_excluded() -> dict[str, str]:
    """Recordings that are left out on purpose: stamp id → reason, sorted by id."""
    table = _read(files("pullpush.data") / "events" / EXCLUDED)
    for stamp, reason in table.items():
        if not (isinstance(reason, str) and reason.strip()):
            raise VocabularyError(f"{EXCLUDED}: {stamp}: expected the reason as text, got {reason!r}")
    return dict(sorted(table.items()))


def parse_events(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Event, ...]:
    """Events from tables as read from YAML (file name → event name → entry), checked, sorted by name.

    Raises:
        VocabularyError: an entry is malformed, an event or a recording is there twice, or two events share a caption.
    """
    events: dict[str, Event] = {}
    for file, table in tables.items():
        for name, entry in table.items():
            if name in events:
                raise VocabularyError(f"{file}: {name}: an event of that name exists already")
            events[name] = _parse_event(f"{file}: {name}", name, entry)
    ordered = tuple(events[name] for name in sorted(events))
    _check_distinct(ordered)
    return ordered


def parse_clause(text: str, *, where: str = "clause") -> Clause:
    """`"a frog | croaks"` → `Clause("a frog", "croaks")`; `VocabularyError` naming `where` if it is not such a pair."""
    parts = [part.strip() for part in text.split(SEPARATOR)] if isinstance(text, str) else []
    if len(parts) != 2 or not all(parts):
        raise VocabularyError(f'{where}: expected "subject {SEPARATOR} verb", got {text!r}')
    return Clause(*parts)


def parse_phrases(entry: Mapping[str, Any], *, where: str = "phrases") -> Phrases:
    """`{clauses: [...], nouns: [...], label: ...}` → `Phrases`; `VocabularyError` naming `where` if malformed."""
    if not isinstance(entry, Mapping) or set(entry) != {"clauses", "nouns", "label"}:
        raise VocabularyError(f"{where}: expected the keys clauses, nouns, label, got {entry!r}")
    for key in ("clauses", "nouns"):
        if not isinstance(entry[key], list):  # a text would be taken for a list of letters
            raise VocabularyError(f"{where}: expected {key} as a list, got {entry[key]!r}")
    clauses = tuple(parse_clause(text, where=where) for text in entry["clauses"])
    nouns = tuple(entry["nouns"])
    texts = [entry["label"], *nouns, *(part for clause in clauses for part in (clause.subject, clause.verb))]
    for text in texts:
        if not isinstance(text, str) or text != " ".join(text.split()) or not text or SEPARATOR in text:
            raise VocabularyError(f"{where}: expected text without {SEPARATOR!r} or superfluous spaces, got {text!r}")
    if len(set(clauses)) < 2 or not nouns:
        raise VocabularyError(f"{where}: expected at least two different clauses and one noun phrase")
    return Phrases(clauses, nouns, entry["label"])


def _tables() -> list[Traversable]:
    folder = files("pullpush.data") / "events"
    return sorted((path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name)


def _read(path: Traversable) -> dict[str, Any]:
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise VocabularyError(f"{path.name}: not valid YAML: {error}") from error
    if not isinstance(table, dict):
        raise VocabularyError(f"{path.name}: expected a table of names, got {type(table).__name__}")
    return table


def _parse_event(where: str, name: str, entry: Mapping[str, Any]) -> Event:
    expected = {"category", "recordings", *LANGUAGES}
    if not isinstance(entry, Mapping) or set(entry) != expected:
        keys = set(entry) if isinstance(entry, Mapping) else set()
        raise VocabularyError(
            f"{where}: missing {sorted(expected - keys) or 'nothing'}, "
            f"unexpected {sorted(keys - expected) or 'nothing'}"
        )
    if not isinstance(entry["recordings"], list) or not entry["recordings"]:
        raise VocabularyError(f"{where}: expected a list of recordings, got {entry['recordings']!r}")
    phrases = {code: parse_phrases(entry[code], where=f"{where}: {code}") for code in LANGUAGES}
    return Event(name, entry["category"], tuple(entry["recordings"]), phrases)


def _check_distinct(events: tuple[Event, ...]) -> None:
    """A caption must say which event it is of: no recording and no phrase may belong to two events."""
    owner: dict[tuple[str, str], str] = {}
    for event in events:
        claims = [("recording", stamp) for stamp in event.recordings]
        for code, phrases in event.phrases.items():
            says = {f"{clause.subject} {clause.verb}" for clause in phrases.clauses} | set(phrases.nouns)
            claims += [(code, text.casefold()) for text in sorted(says)]
            claims.append((f"{code} label", phrases.label.casefold()))
        for claim in claims:
            if owner.setdefault(claim, event.name) != event.name:
                raise VocabularyError(f"{event.name} and {owner[claim]} share the {claim[0]} phrase {claim[1]!r}")

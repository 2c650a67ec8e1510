"""What scenes are known by: the components that make and tell them, and all that decides their captions."""

from __future__ import annotations

from pullpush.cache import content_key
from pullpush.data.bank import Bank
from pullpush.data.languages import load_languages, told_by

SCENES = ("data/scenes", "data/renderer", "data/pitch")  # the components whose work the cache holds
KNOWN = ("data/relevance", "data/labels")  # and those that clips of scenes ask


def words_of(bank: Bank, *, each: int, seed: int) -> str:
    """A name for what decides the captions of a bank's scenes: what its events are called, and how they are told.

    each, seed: how many captions a scene has, and what they are drawn by.

    >>> from pullpush.data.banks import create_bank
    >>> bank = create_bank("synthetic")
    >>> words_of(bank, each=5, seed=0) == words_of(bank, each=5, seed=0) != words_of(bank, each=5, seed=1)
    True
    """
    events = [[event.name, event.category, event.phrases] for event in bank.events]
    return content_key([events, told_by(_languages(bank)), each, seed])


def parts_of(bank: Bank) -> tuple[str, ...]:
    """The components (see `pullpush.golden`) that make scenes of a bank, and tell them.

    >>> from pullpush.data.banks import create_bank
    >>> parts_of(create_bank("synthetic"))[:4]
    ('data/scenes', 'data/renderer', 'data/pitch', 'data/relevance')
    """
    return *SCENES, *KNOWN, *(f"languages/{code}" for code in _languages(bank))


def _languages(bank: Bank) -> list[str]:
    """Those that the bank's events are told in."""
    return [code for code in load_languages() if any(code in event.phrases for event in bank.events)]

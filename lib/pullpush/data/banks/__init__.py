"""Banks of recorded events by name, one file each: what scenes are composed of.

A file adds a bank by a card, `CARD = BankCard(name=…, make=…)`, and `BANKS` finds it; a reader's own files lie in
`$PULLPUSH_EXTRA/banks/`. `tuxpaint:bird,insect` is the part of a bank with events of these categories.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pullpush.cache import content_key
from pullpush.catalogue import Catalogue
from pullpush.data.language.vocabulary import Event
from pullpush.data.scenes.bank import Bank, BankCard, EventClips
from pullpush.errors import PullPushError, unknown

__all__ = ["BANKS", "Bank", "BankCard", "create_bank"]

BANKS: Catalogue[BankCard] = Catalogue("pullpush.data.banks", BankCard, "bank")


def create_bank(name: str) -> Bank:
    """The bank `name`: "tuxpaint", "synthetic" or "folder:/path/to/classes".

    The first two take categories of events: "tuxpaint:bird,insect" holds birds and insects only.

    Recordings are decoded once, and memory-mapped from the cache from then on.

    Raises:
        UnknownNameError: there is no such bank, or no event of such a category in it.
        DataNotFoundError: its recordings are not on disk and cannot be fetched.
        AudioError: a recording is corrupt, empty or silent; the message names the file.

    >>> [event.name for event in create_bank("synthetic:sweep").events]
    ['fall', 'rise']
    """
    kind, _, argument = name.partition(":")
    if kind not in BANKS:
        raise unknown("bank", name, ["folder:/path" if kind == "folder" else kind for kind in BANKS])
    events, clips = BANKS[kind].make(argument)
    if argument and BANKS[kind].categories:
        events, clips = _of_categories(events, clips, argument.split(","))
    if not len(events) == len(clips) or not all(clips):
        raise PullPushError(f"bank {name!r} needs at least one recording for each of its events")
    samples = hashlib.sha256()
    for group in clips:
        for clip in group:
            samples.update(clip.numpy().tobytes())
    counts = [[len(clip) for clip in group] for group in clips]
    key = content_key([kind, [event.name for event in events], counts, samples.hexdigest()])
    return Bank(name, events, clips, key)


def _of_categories(
    events: Sequence[Event], clips: EventClips, categories: Sequence[str]
) -> tuple[tuple[Event, ...], EventClips]:
    """The events of some categories, in their order."""
    known = {event.category for event in events}
    for category in categories:
        if category not in known:
            raise unknown("category of events", category, known)
    rows = [row for row, event in enumerate(events) if event.category in categories]
    return tuple(events[row] for row in rows), tuple(clips[row] for row in rows)

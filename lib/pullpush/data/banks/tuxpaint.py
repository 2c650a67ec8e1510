"""The sound effects of Tux Paint's stamps, as `events.yaml` names them."""

from __future__ import annotations

from pullpush.data.language.vocabulary import Event, load_events
from pullpush.data.recordings.tuxpaint import PACKAGE, fetch, recording
from pullpush.data.scenes.bank import BankCard, EventClips, decoded


def read(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """The curated events with their recordings, fetched where they are not on disk."""
    events, stamps = load_events(), fetch()
    return events, decoded([[recording(stamps, stamp) for stamp in event.recordings] for event in events])


CARD = BankCard(
    name="tuxpaint",
    make=read,
    title="Tux Paint",
    about="82 events in 89 recordings: animals, instruments, tools, toys and vehicles.",
    source="the stamps of Tux Paint, 2022-06-04",
    authors="Bill Kendrick and the authors of Tux Paint's stamps",
    licence="GPL-2.0-or-later; some recordings in the public domain",
    version="2022.06.04 (Debian: tuxpaint-stamps-default)",
    fetch=fetch,
    megabytes=PACKAGE.megabytes,
)

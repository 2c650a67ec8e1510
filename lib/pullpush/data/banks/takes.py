"""Further recordings of events of the bank `tuxpaint`, as `takes.yaml` names them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pullpush.cache import home
from pullpush.data.language.vocabulary import Event, load_events
from pullpush.data.recordings.debian import KIND
from pullpush.data.recordings.takes import SOURCES, fetch, load_takes
from pullpush.data.scenes.bank import BankCard, EventClips, decoded


def read(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """Tux Paint's events that have further recordings, with those alone."""
    takes, files = load_takes(), fetch()
    events = tuple(replace(event, recordings=takes[event.name]) for event in load_events() if event.name in takes)
    return events, decoded([[files[take] for take in event.recordings] for event in events])


def gather() -> Path:
    """Fetch the packages that they are in; the folder that those lie in."""
    fetch()
    return home() / KIND


CARD = BankCard(
    name="takes",
    make=read,
    title="Further takes",
    about="20 events of Tux Paint in 31 further recordings: known sounds, never heard in training.",
    source="GCompris, Scratch, OpenSFX, Minetest's home decor and the freedesktop sound theme",
    authors="the authors of GCompris, Lionel Allorge, the MIT Media Lab, the authors of OpenSFX (Jarred Gib, dobroide, "
    "l0calh05t, David R Barnes; edited by Wuzzy), Vanessa Ezekowitz, horsthorstensen",
    licence="GPL-3.0-or-later and Free Art (GCompris), CC BY-SA 3.0 (Scratch, OpenSFX, freedesktop), CC BY-SA 4.0 "
    "(home decor)",
    version="Debian: gcompris-qt-data 3.1, scratch 1.4.0.6, openttd-opensfx 1.0.3, minetest-mod-homedecor 20210327.1, "
    "sound-theme-freedesktop 0.8",
    fetch=gather,
    megabytes=sum(source.package.megabytes for source in SOURCES.values()),
)

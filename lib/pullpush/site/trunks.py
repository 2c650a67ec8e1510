"""The trunks that travel with the book, made again: `pullpush trunk single-events`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pullpush.errors import unknown
from pullpush.lab import profiles, scenes, trunks
from pullpush.lab.session import Session
from pullpush.studies.consistency import speech

TRUNKS = {**scenes.TRUNKS, **speech.TRUNKS}


def make(name: str, *, root: Path | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train a trunk of the profile quick again, in place of the book's; what was noted of the old and of the new.

    Raises:
        UnknownNameError: no such trunk.
    """
    if name not in TRUNKS:
        raise unknown("trunk", name, TRUNKS)
    book = Session("trunks", profiles.profile(profiles.DEFAULT), 0, Path())
    before = trunks.made(root=root).get(name, {})
    plan, about = TRUNKS[name](scenes.reduced(book)), (TRUNKS[name].__doc__ or "").partition("\n")[0]
    return before, trunks.make(name, plan, about, root=root)

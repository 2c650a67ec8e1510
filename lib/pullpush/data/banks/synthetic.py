"""Twelve events made by formula: nothing to download."""

from __future__ import annotations

from pullpush.data.language.vocabulary import Event
from pullpush.data.scenes.bank import BankCard, EventClips
from pullpush.data.scenes.synthetic import synthetic_clips, synthetic_events


def read(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """See synthetic.py."""
    return synthetic_events(), synthetic_clips()


CARD = BankCard(
    name="synthetic",
    make=read,
    title="Synthetic",
    about="Twelve events made by formula, in three variants each: for tests and the profile smoke.",
    source="data/synthetic.py",
)

"""The splits of `held_out` for a bank of one's own, whose kinds of sound share no categories.

There half of *all* events are held out, not half of each category, and further recordings are the last of each event.
What the bank is too small for is left out: "events" of a single event, "heard" and "recordings" of events with one
recording each. See `held_out` for what the splits hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pullpush.data.clips import World
from pullpush.data.held_out import HeldOutConfig, _Part, held_out_world, named_events, two_banks


@dataclass(frozen=True)
class OwnHeldOutConfig(HeldOutConfig):
    """What is held out of a bank of one's own; see `HeldOutConfig`."""

    takes: str = ""

    def load(self) -> World:
        """See `load_own_held_out`."""
        return load_own_held_out(self)


def load_own_held_out(config: OwnHeldOutConfig) -> World:
    """Render the splits that the bank is large enough for, or read them from the cache; raises as `load_held_out`.

    >>> from pullpush.data.world import WorldConfig
    >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
    >>> sorted(load_own_held_out(OwnHeldOutConfig(small)).splits)
    ['events', 'heard', 'recording_singles', 'recordings', 'singles', 'test', 'train', 'valid']
    """
    size = config.world
    heard, unheard = two_banks(size.bank, config.takes)
    alike = replace(heard, events=tuple(replace(event, category="") for event in heard.events))
    named = named_events(alike, unheard, config.share, seed=size.seed)
    again = [event for event in named if unheard.clips[event]]
    never = [event for event in range(len(heard)) if event not in named]
    parts = {
        "train": _Part(heard, named, "train", size.n_train),
        "valid": _Part(heard, named, "valid", size.n_valid),
        "test": _Part(heard, named, "test", size.n_test),
        "heard": _Part(heard, again, "test", size.n_test),
        "recordings": _Part(unheard, again, "test", size.n_test),
        "events": _Part(heard, never, "test", size.n_test),
        "singles": _Part(heard, range(len(heard)), "", size.n_single_per_event),
        "recording_singles": _Part(unheard, again, "", size.n_single_per_event),
    }
    return held_out_world(config, {name: part for name, part in parts.items() if part.events}, heard)

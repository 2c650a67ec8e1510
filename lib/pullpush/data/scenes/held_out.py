"""Scenes that tell three kinds of new apart: new combinations, new recordings of named events, events never named.

A world of one bank tests combinations alone: every recording of its test scenes was heard in training. Here half of the
events are kept out of training altogether, and recordings by other people wait for the other half:

| split | events | recordings | combinations |
|---|---|---|---|
| train, valid | named | of the bank | their own |
| test | named | of the bank | new |
| heard | named, with further recordings | of the bank | new |
| recordings | the same, in the same graphs, scene by scene | further ones | new |
| events | never named | of the bank | new |
| singles, recording_singles | all; those with further recordings | of the bank; further ones | one event each |

"heard" is the control of "recordings": the two differ in nothing but whose recordings sound and how each is heard (its
pitch, level, distance and place are drawn anew).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from pullpush.cache import content_key
from pullpush.data.banks import Bank, EventClips, create_bank
from pullpush.data.clips import Splits, StoredClips, World
from pullpush.data.draws import share as drawn
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import (
    SCENES,
    WorldConfig,
    draw_scenes,
    draw_singles,
    parts_of,
    scene_clips,
    words_of,
)
from pullpush.errors import PullPushError
from pullpush.golden import versions

TESTS = ("test", "heard", "recordings", "events")  # splits of `n_test` scenes each


@dataclass(frozen=True)
class HeldOutConfig:
    """What is held out of which world.

    world: its bank, sizes (`n_test` scenes in each of the four test splits) and sound; takes: a bank with further
    recordings of its events, by their names; "" holds out the last recording of each event that has several; share:
    of the events of each category, how many training never names.
    """

    world: WorldConfig = field(default_factory=WorldConfig)
    takes: str = "takes"
    share: float = 0.5
    by_category: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {self.share}")

    @property
    def seed(self) -> int:
        return self.world.seed

    @property
    def captions_per_scene(self) -> int:
        return self.world.captions_per_scene

    def load(self) -> World:
        """Render the splits, or read them from the cache. `bank` of the world is the one that is heard in training.

        Raises:
            UnknownNameError, DataNotFoundError: a bank is unknown, or cannot be fetched.
            PullPushError: no named event has a further recording, or too few events are left for the splits.

        """
        size = self.world
        heard, unheard = two_banks(size.bank, self.takes)
        alike = replace(heard, events=tuple(replace(event, category="") for event in heard.events))
        named = named_events(heard if self.by_category else alike, unheard, self.share, seed=size.seed)
        again = [event for event in named if unheard.clips[event]]
        never = [event for event in range(len(heard)) if event not in named]
        if self.by_category and not again:
            raise PullPushError(f"no event that training names has a further recording in {self.takes or size.bank!r}")
        parts = {
            "train": (heard, named, "train", size.n_train),
            "valid": (heard, named, "valid", size.n_valid),
            "test": (heard, named, "test", size.n_test),
            "heard": (heard, again, "test", size.n_test),
            "recordings": (unheard, again, "test", size.n_test),
            "events": (heard, never, "test", size.n_test),
            "singles": (heard, range(len(heard)), "", size.n_single_per_event),
            "recording_singles": (unheard, again, "", size.n_single_per_event),
        }
        parts = {name: part for name, part in parts.items() if self.by_category or part[1]}
        splits = Splits({name: partial(_clips, name, *part, size) for name, part in parts.items()})
        words = words_of(heard, each=self.captions_per_scene, seed=self.seed)
        return World(self, splits, words, heard, parts=(*parts_of(heard), "data/held_out"))


@dataclass(frozen=True)
class OwnHeldOutConfig(HeldOutConfig):
    """What is held out of a bank of one's own, whose kinds of sound share no categories.

    Half of *all* events are held out, not half of each category, and further recordings are the last of each event.
    What the bank is too small for is left out: "events" of a single event, "heard" and "recordings" of events with one
    recording each.
    """

    takes: str = ""
    by_category: ClassVar[bool] = False


def two_banks(bank: str, takes: str) -> tuple[Bank, Bank]:
    """The recordings to learn from and those to hold out, over the same events; of the second bank, events without a
    further recording have no clips.
    """
    whole = create_bank(bank)
    if takes:
        further = create_bank(takes)
        found = {event.name: clips for event, clips in zip(further.events, further.clips, strict=True)}
        held = tuple(found.get(event.name, ()) for event in whole.events)
        return whole, replace(whole, name=takes, clips=held, key=content_key([whole.key, further.key]))
    kept = tuple(group[:-1] or group for group in whole.clips)
    held = tuple(group[len(part) :] for group, part in zip(whole.clips, kept, strict=True))
    return _part(whole, "kept", kept), _part(whole, "held", held)


def _part(whole: Bank, name: str, clips: EventClips) -> Bank:
    return replace(whole, clips=clips, key=content_key([whole.key, name]))


def named_events(heard: Bank, unheard: Bank, share: float, *, seed: int) -> list[int]:
    """The events that training names: all but a share of each category, which is drawn by a hash of the names.

    Events with further recordings are named before others, so that as many as can be are tested with them.
    """
    groups: dict[str, list[int]] = {}
    for row, event in enumerate(heard.events):
        groups.setdefault(event.category, []).append(row)

    def order(row: int) -> tuple[bool, float]:
        return not unheard.clips[row], drawn(("named", seed, heard.events[row].name))

    kept = [sorted(rows, key=order)[: len(rows) - int(share * len(rows))] for rows in groups.values()]
    return sorted(row for rows in kept for row in rows)


def scenes_of(bank: Bank, events: Sequence[int], dealt: str, size: int, world: WorldConfig) -> list[Scene]:
    """`size` scenes of the combinations that the split `dealt` owns; dealt = "": `size` of each event alone.

    Drawn from a bank of these events alone; then numbered as the whole bank's.
    """
    some = replace(
        bank, events=tuple(bank.events[row] for row in events), clips=tuple(bank.clips[row] for row in events)
    )
    scenes = draw_scenes(dealt, size, some, world) if dealt else draw_singles(some, size, world)
    return [
        replace(scene, sounds=tuple(replace(sound, event=events[sound.event]) for sound in scene.sounds))
        for scene in scenes
    ]


def _clips(name: str, bank: Bank, events: Sequence[int], dealt: str, size: int, world: WorldConfig) -> StoredClips:
    """One split, from the cache or rendered."""
    shaped = [bank.key, list(events), dealt, size, world.seed, world.scene]
    key = content_key([versions(*SCENES, "data/held_out"), name, *shaped])
    return scene_clips(name, key, partial(scenes_of, bank, events, dealt, size, world), bank, world)

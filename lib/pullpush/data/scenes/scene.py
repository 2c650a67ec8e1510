"""The truth behind a clip: which events sound, in which order or relation, and how well two clips match.

A scene is a small graph: its nodes are sounds, its one edge type says whether they follow each other or sound
together. Captions are written from it, audio is rendered from it, and relevance is computed from it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullpush.data.language.vocabulary import Event

RELATIONS = ("single", "sequence", "overlap")
SAME_SET = 0.75  # relevance of the same events in another order or relation


@dataclass(frozen=True)
class Sound:
    """One event as it is heard in a scene.

    event: index into the bank's events; clip: index into that event's recordings; onset: seconds from the
    start of the scene; semitones: shift in pitch (and speed, as on a tape); gain_db: level relative to the bank's;
    far: heard from a distance; repeats: how often the recording sounds (1 = once).
    """

    event: int
    clip: int
    onset: float
    semitones: int = 0
    gain_db: float = 0.0
    far: bool = False
    repeats: int = 1


@dataclass(frozen=True)
class Scene:
    """Sounds sorted by onset, their relation, the background noise and the true length in seconds.

    relation: "single" (one sound), "sequence" (each begins after the one before has ended) or "overlap" (they sound
    together). snr_db: level of the sounds over the background noise, None without noise.

    >>> Scene((Sound(2, 0, onset=0.0), Sound(1, 0, onset=1.0)), "sequence", None, 3.0).graph
    ('sequence', (2, 1))
    """

    sounds: tuple[Sound, ...]
    relation: str
    snr_db: float | None
    duration: float

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise ValueError(f"relation must be one of {RELATIONS}, got {self.relation!r}")
        if not self.sounds or (len(self.sounds) == 1) != (self.relation == "single"):
            raise ValueError(f"a scene of {len(self.sounds)} sound(s) cannot have the relation {self.relation!r}")
        onsets = [sound.onset for sound in self.sounds]
        if onsets != sorted(onsets):
            raise ValueError(f"sounds must be sorted by onset, got onsets {onsets}")

    @property
    def events(self) -> tuple[int, ...]:
        """Indices of the events in the order in which they begin."""
        return tuple(sound.event for sound in self.sounds)

    @property
    def graph(self) -> tuple[str, tuple[int, ...]]:
        """What a caption can tell: the relation and the events, in order unless they sound together."""
        ordered = self.events if self.relation == "sequence" else tuple(sorted(self.events))
        return self.relation, ordered


def relevance_matrix(queries: Sequence[Scene], scenes: Sequence[Scene], events: Sequence[Event]) -> Tensor:
    """How well a caption of one scene fits another, `(Q, N)` float32, symmetric, in [0, 1].

    - 1: the same graph, that is the same events in the same relation (and order, for a sequence);
    - 0.75: the same events in another order or relation;
    - 0.75 * I / (|A| + |B| - I) otherwise, a Jaccard index in which I counts 1 for an event that both scenes hold
      and 0.5 for a pair of different events of one category (a near miss: two birds);
    - 0: nothing in common.

    Pitch, level, distance, repetition and noise do not count: captions mention them only sometimes.
    """
    names = sorted({event.category for event in events})
    category = np.array([names.index(event.category) for event in events], dtype=np.int64)
    shared_events = _intersection(_counts(queries, len(events)), _counts(scenes, len(events)))
    shared_categories = _intersection(_counts(queries, len(names), category), _counts(scenes, len(names), category))
    # Pairs left over within a category are C - M, worth a half each: M + (C - M) / 2 = (M + C) / 2.
    shared = (shared_events + shared_categories) / 2
    sizes = np.array([len(q.sounds) for q in queries])[:, None] + np.array([len(s.sounds) for s in scenes])[None]
    graded = SAME_SET * shared / (sizes - shared)
    numbers: dict[tuple, int] = {}
    a, b = (np.array([numbers.setdefault(s.graph, len(numbers)) for s in group], int) for group in (queries, scenes))
    return torch.from_numpy(np.where(a[:, None] == b, 1.0, graded).astype(np.float32))


def _counts(scenes: Sequence[Scene], width: int, mapping: np.ndarray | None = None) -> np.ndarray:
    """How often each event (or its category, through `mapping`) occurs in each scene, `(N, width)` int64."""
    counts = np.zeros((len(scenes), width), dtype=np.int64)
    rows = np.repeat(np.arange(len(scenes)), [len(scene.sounds) for scene in scenes])
    columns = np.array([event for scene in scenes for event in scene.events], dtype=np.int64)
    np.add.at(counts, (rows, columns if mapping is None else mapping[columns]), 1)
    return counts


def _intersection(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Size of the multiset intersections, `(Q, N)` float32: min(a, b) = sum over k of [a >= k] [b >= k]."""
    most = min(a.max(initial=0), b.max(initial=0))
    total = np.zeros((len(a), len(b)), dtype=np.float32)
    for k in range(1, most + 1):  # a matrix product per count, instead of a (Q, N, width) array
        total += (a >= k).astype(np.float32) @ (b >= k).astype(np.float32).T
    return total


def to_json(scenes: Iterable[Scene]) -> str:
    """Scenes as JSON text, one scene a line."""
    return "".join(json.dumps(asdict(scene), ensure_ascii=False) + "\n" for scene in scenes)


def from_json(text: str) -> tuple[Scene, ...]:
    """The scenes that `to_json` wrote, exactly."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    return tuple(Scene(**row | {"sounds": tuple(Sound(**sound) for sound in row["sounds"])}) for row in rows)

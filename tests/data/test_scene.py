"""Relevance against an oracle that pairs events by hand; scenes survive JSON."""

from itertools import permutations
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, strategies as st

from pullpush.data.scenes.scene import Scene, Sound, from_json, relevance_matrix, to_json

CATEGORIES = ("bird", "bird", "bird", "insect", "insect", "bell")
EVENTS = [SimpleNamespace(category=category) for category in CATEGORIES]


def scene(relation: str, *events: int, **options) -> Scene:
    return Scene(tuple(Sound(event, 0, 0.5 * i, **options) for i, event in enumerate(events)), relation, None, 4.0)


@st.composite
def scenes(draw) -> Scene:
    events = draw(st.lists(st.integers(0, len(EVENTS) - 1), min_size=1, max_size=4))
    relation = "single" if len(events) == 1 else draw(st.sampled_from(["sequence", "overlap"]))
    sounds = tuple(
        Sound(
            event,
            draw(st.integers(0, 3)),
            0.5 * i,
            draw(st.integers(-3, 3)),
            draw(st.floats(-9, 0)),
            draw(st.booleans()),
            draw(st.integers(1, 3)),
        )
        for i, event in enumerate(events)
    )
    return Scene(sounds, relation, draw(st.none() | st.floats(0, 30)), draw(st.floats(2, 10)))


def relevance(a: Scene, b: Scene) -> float:
    return float(relevance_matrix([a], [b], EVENTS)[0, 0])


def best_pairing(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """The most that pairing events off can be worth: 1 for the same event, a half for the same category."""
    short, long = sorted((a, b), key=len)

    def worth(x: int, y: int) -> float:
        return 1.0 if x == y else 0.5 if CATEGORIES[x] == CATEGORIES[y] else 0.0

    return max(sum(map(worth, short, choice)) for choice in permutations(long, len(short)))


@given(st.lists(scenes(), min_size=1, max_size=4), st.lists(scenes(), min_size=1, max_size=4))
def test_relevance_is_a_jaccard_index_with_near_misses(queries, others):
    matrix = relevance_matrix(queries, others, EVENTS)
    assert matrix.dtype == torch.float32
    assert torch.equal(matrix, relevance_matrix(others, queries, EVENTS).T), "symmetric"
    for i, a in enumerate(queries):
        for j, b in enumerate(others):
            shared = best_pairing(a.events, b.events)
            same_order = a.events == b.events if a.relation == "sequence" else sorted(a.events) == sorted(b.events)
            expected = 0.75 * shared / (len(a.events) + len(b.events) - shared)
            if a.relation == b.relation and same_order:
                expected = 1.0
            assert float(matrix[i, j]) == pytest.approx(expected, abs=1e-6)


def test_order_counts_in_a_sequence_and_not_in_an_overlap():
    assert relevance(scene("sequence", 0, 3), scene("sequence", 0, 3)) == 1
    assert relevance(scene("sequence", 0, 3), scene("sequence", 3, 0)) == 0.75
    assert relevance(scene("sequence", 0, 3), scene("overlap", 0, 3)) == 0.75
    assert relevance(scene("overlap", 0, 3), scene("overlap", 3, 0)) == 1
    assert relevance(scene("single", 0), scene("single", 5)) == 0
    assert relevance(scene("single", 0), scene("single", 1)) == pytest.approx(0.25)


def test_how_a_sound_is_heard_does_not_count():
    assert relevance(scene("single", 0), scene("single", 0, far=True, repeats=3, semitones=2)) == 1


@given(st.lists(scenes(), max_size=4))
def test_scenes_survive_json(many):
    assert from_json(to_json(many)) == tuple(many)


def test_impossible_scenes_are_refused():
    with pytest.raises(ValueError, match="relation"):
        scene("together", 0, 1)
    with pytest.raises(ValueError, match="cannot have the relation"):
        scene("single", 0, 1)
    with pytest.raises(ValueError, match="cannot have the relation"):
        Scene((), "overlap", None, 4.0)
    with pytest.raises(ValueError, match="sorted by onset"):
        Scene((Sound(0, 0, 1.0), Sound(1, 0, 0.0)), "sequence", None, 4.0)

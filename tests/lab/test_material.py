"""What a chapter trains on, on a tiny world."""

from __future__ import annotations

from pullpush.lab import material


def test_the_halves_of_a_bank_share_no_event(world):
    halves = [set(half.split(",")) for half in material.categories(world)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == {event.category for event in world.bank.events}
    sizes = [sum(event.category in half for event in world.bank.events) for half in halves]
    assert abs(sizes[0] - sizes[1]) <= 2

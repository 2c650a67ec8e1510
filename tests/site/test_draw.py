"""The draw: over all chapters, the same by its seed, within its minutes."""

from __future__ import annotations

import pytest

from pullpush.site.draw import Kept, draw, passed_over

THERE = [
    Kept("01", "a", 10, 100.0),
    Kept("02", "b", 50, 5000.0),
    Kept("02", "c", 3, 300.0),
    Kept("02", "slow", 3, 3000.0),
    Kept("03", "d", 2, 20.0),
]


def test_chapters_and_their_experiments_take_turns():
    found = draw(THERE, runs=6, minutes=60, seed=0)
    assert sorted(str(kept) for kept, _ in found) == ["01/a", "01/a", "02/b", "02/c", "03/d", "03/d"] or (
        {kept.chapter for kept, _ in found[:3]} == {"01", "02", "03"}
    )
    of_second = [kept.experiment for kept, _ in draw(THERE, runs=12, minutes=600, seed=1) if kept.chapter == "02"]
    assert {*of_second[:3]} == {"b", "c", "slow"}


def test_no_run_is_drawn_twice_and_there_may_be_fewer_than_were_asked_for():
    found = draw(THERE, runs=500, minutes=10_000, seed=0)
    assert len(found) == len({*found}) == sum(kept.runs for kept in THERE)
    assert all(0 <= number < kept.runs for kept, number in found)


def test_a_seed_decides():
    one, same, other = (draw(THERE, runs=9, minutes=60, seed=seed) for seed in (4, 4, 5))
    assert one == same != other


@pytest.mark.parametrize("seed", range(5))
def test_the_minutes_hold(seed):
    found = draw(THERE, runs=20, minutes=10, seed=seed)
    assert sum(kept.cost for kept, _ in found) <= 600
    assert "slow" not in {kept.experiment for kept, _ in found}
    assert [kept.experiment for kept in passed_over(THERE, runs=20, minutes=10)] == ["b", "c", "slow"]
    assert {"01", "03"} == {kept.chapter for kept, _ in found}


def test_nothing_is_drawn_from_nothing():
    assert draw([], runs=3, minutes=1, seed=0) == []

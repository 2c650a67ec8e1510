"""The draw: over all chapters, the same by its seed, within its minutes."""

import pytest

from pullpush.site.standing import Note, draw, passed_over

THERE = [
    Note("01", "a", 10, 100.0),
    Note("02", "b", 50, 5000.0),
    Note("02", "c", 3, 300.0),
    Note("02", "slow", 3, 3000.0),
    Note("03", "d", 2, 20.0),
]


def test_chapters_and_their_experiments_take_turns():
    found = draw(THERE, runs=6, minutes=60, seed=0)
    assert sorted(str(note) for note, _ in found) == ["01/a", "01/a", "02/b", "02/c", "03/d", "03/d"] or (
        {note.chapter for note, _ in found[:3]} == {"01", "02", "03"}
    )
    of_second = [note.experiment for note, _ in draw(THERE, runs=12, minutes=600, seed=1) if note.chapter == "02"]
    assert {*of_second[:3]} == {"b", "c", "slow"}


def test_no_run_is_drawn_twice_and_there_may_be_fewer_than_were_asked_for():
    found = draw(THERE, runs=500, minutes=10_000, seed=0)
    assert len(found) == len({*found}) == sum(note.runs for note in THERE)
    assert all(0 <= number < note.runs for note, number in found)


@pytest.mark.parametrize("seed", range(5))
def test_the_minutes_hold(seed):
    found = draw(THERE, runs=20, minutes=10, seed=seed)
    assert sum(note.cost for note, _ in found) <= 600
    assert "slow" not in {note.experiment for note, _ in found}
    assert [note.experiment for note in passed_over(THERE, runs=20, minutes=10)] == ["b", "c", "slow"]
    assert {"01", "03"} == {note.chapter for note, _ in found}

"""The draw: over all chapters, the same by its seed, within its minutes."""

from functools import partial

import pytest

from pullpush.lab.kept import Record
from pullpush.site.standing import draw, passed_over

of = partial(Record, "now", "", (0,), declared={}, content="", but_seeds="", sha256="")
THERE = [
    of(100.0, chapter="01", experiment="a", runs=10),
    of(5000.0, chapter="02", experiment="b", runs=50),
    of(300.0, chapter="02", experiment="c", runs=3),
    of(3000.0, chapter="02", experiment="slow", runs=3),
    of(20.0, chapter="03", experiment="d", runs=2),
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

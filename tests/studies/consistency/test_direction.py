"""The direction error, on spaces whose answer is known and on a run that it must not change."""

from __future__ import annotations

import pytest

from pullpush.lab import session
from pullpush.studies.consistency import direction
from pullpush.studies.consistency.schemes import SCHEMES


def test_more_languages_taken_err_less_and_all_do_not_err(toy):
    table = direction.direction_by_count({("kcl", 0): toy(clips=200, languages=4, noise=0.8)})
    some = table[table["what"] == "m of all"].set_index("count")["error"]
    assert some[4] == pytest.approx(0, abs=1e-4)
    assert some.is_monotonic_decreasing
    first = table[table["what"] == "one of K"].set_index("count")["error"]
    assert first[1] == pytest.approx(0, abs=1e-4)
    assert first.is_monotonic_increasing
    assert first[4] == pytest.approx(some[1])


def test_the_probe_watches_without_changing_the_run(heard, tmp_path):
    book = session.start("03-consistency-lab", profile="smoke", out=tmp_path)
    table = direction.direction_history(book, heard, [0], points=1, languages=("eng", "fra", "deu"))
    assert list(dict.fromkeys(table["recipe"])) == list(SCHEMES)
    assert table[list(direction.PROBED)].to_numpy().min() >= 0
    assert table[list(direction.PROBED)].to_numpy().max() <= 180
    last = table.query("recipe == 'kcl'").sort_values("step")["pair"].iloc[-1]
    assert direction.last_angles(table, "kcl", "pair").tolist() == [[last]]

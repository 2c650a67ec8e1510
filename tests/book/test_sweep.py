"""Sweeps finish what is left, once."""

from __future__ import annotations

import pandas as pd
import pytest

from pullpush.book.sweep import SweepError, read, sweep
from pullpush.errors import DataNotFoundError, UnknownNameError


@pytest.fixture
def plan(tiny):
    path = tiny / "grid.yaml"
    path.write_text("chapter: 10-tiny\nprofile: smoke\ngrid:\n  tau: [0.1, 0.2]\n  seed: [0, 1]\n")
    return path


def test_a_grid_runs_in_two_processes_and_is_gathered(plan):
    done = sweep(plan, jobs=2)
    assert (len(done.ran), len(done.skipped), len(done.failed)) == (4, 0, 0)
    table = pd.read_csv(done.tables["results"])
    assert table[["tau", "seed"]].values.tolist() == [[0.1, 0], [0.1, 1], [0.2, 0], [0.2, 1]]
    assert table["double"].tolist() == [0.2, 0.2, 0.4, 0.4]
    plan.write_text(plan.read_text().replace("[0.1, 0.2]", "[0.1, 0.2, 0.3]"))
    again = sweep(plan, jobs=2)
    assert (len(again.ran), len(again.skipped)) == (2, 4)


def test_a_failed_cell_is_reported_with_its_notebook_and_run_again(plan):
    plan.write_text("chapter: 10-tiny\nprofile: smoke\ngrid:\n  name: [a, broken]\n")
    done = sweep(plan, jobs=2)
    assert len(done.ran) == 1
    (failure,) = done.failed
    assert failure.cell.parameters == {"name": "broken"}
    assert "asked to break" in failure.message
    assert "10-tiny.ipynb" in failure.message
    assert len(pd.read_csv(done.tables["results"])) == 1
    again = sweep(plan)
    assert (len(again.skipped), len(again.failed)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("chapter: 10-tiny", SweepError, "lacks grid"),
        ("chapter: 10-tiny\ngrid: {tau: 1}", SweepError, "list with at least one"),
        ("chapter: 10-tiny\ngrid: {taw: [1]}", UnknownNameError, "did you mean 'tau'"),
        ("chapter: 10-tiny\ngird: {tau: [1]}", UnknownNameError, "did you mean 'grid'"),
        ("chapter: 10-tiny\ngrid: {tau: [1]}\nfixed: {tau: 2}", SweepError, "in grid and in fixed"),
        ("chapter: [", SweepError, "not YAML"),
    ],
)
def test_a_wrong_plan_says_what_is_wrong(plan, text, error, says):
    plan.write_text(text)
    with pytest.raises(error, match=says):
        read(plan)


def test_a_missing_plan_is_named(tiny):
    with pytest.raises(DataNotFoundError, match="gone"):
        read(tiny / "gone.yaml")

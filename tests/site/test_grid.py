"""Sweeps finish what is left, once."""

import os
from dataclasses import replace

import pandas as pd
import pytest
from filelock import FileLock
from PIL import Image

from pullpush.cache.locks import named
from pullpush.errors import SettingError, UnknownNameError
from pullpush.lab import profiles
from pullpush.site import chapters
from pullpush.site.sweep import SweepError, key_of, read_grid as read, sweep_grid as sweep


@pytest.fixture
def plan(tiny):
    path = tiny / "grid.yaml"
    path.write_text("chapter: 10-tiny\nprofile: smoke\ngrid:\n  tau: [0.1, 0.2]\n  seed: [0, 1]\n")
    return path


@pytest.mark.deep
def test_a_grid_runs_in_two_processes_and_is_gathered(plan):
    done = sweep(plan, jobs=2)
    assert (len(done.ran), len(done.skipped), len(done.failed)) == (4, 0, 0)
    table = pd.read_csv(done.tables["results"])
    assert table[["tau", "seed"]].values.tolist() == [[0.1, 0], [0.1, 1], [0.2, 0], [0.2, 1]]
    assert table["double"].tolist() == [0.2, 0.2, 0.4, 0.4]
    plan.write_text(plan.read_text().replace("[0.1, 0.2]", "[0.1, 0.2, 0.3]"))
    again = sweep(plan, jobs=2)
    assert (len(again.ran), len(again.skipped)) == (2, 4)


def test_a_grid_of_two_parameters_gives_one_table_and_a_figure(plan):
    plan.write_text(plan.read_text() + "fixed: {name: infonce}\nfigure: {x: tau, y: double, colours: name}\n")
    done = sweep(plan, jobs=1)
    with Image.open(done.tables["figure"]) as image:
        assert image.size > (300, 200)
    plan.write_text(plan.read_text().replace("double", "doubel"))
    with pytest.raises(UnknownNameError, match="did you mean 'double'"):
        sweep(plan)


def test_a_failed_cell_is_reported_with_its_notebook_and_run_again(plan):
    plan.write_text("chapter: 10-tiny\nprofile: smoke\ngrid:\n  name: [a, broken]\n")
    done = sweep(plan, jobs=1)
    assert len(done.ran) == 1
    ((cell, message),) = done.failed
    assert cell == "name=broken"
    assert "asked to break" in message
    assert "10-tiny.ipynb" in message
    assert len(pd.read_csv(done.tables["results"])) == 1
    again = sweep(plan)
    assert (len(again.skipped), len(again.failed)) == (1, 1)


def test_a_sweep_takes_the_profiles_that_a_run_takes_and_a_changed_one_makes_other_cells(plan, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("like: smoke\nepochs: 7\n")
    plan.write_text(f"chapter: 10-tiny\nprofile: {mine}\ngrid: {{tau: [0.1]}}\n")
    first = sweep(plan)
    assert not first.failed
    assert pd.read_csv(first.tables["results"])["epochs"].tolist() == [7]
    mine.write_text("like: smoke\nepochs: 7\nabout: the same in other words\n")
    assert len(sweep(plan).skipped) == 1
    mine.write_text("like: smoke\nepochs: 8\n")
    changed = sweep(plan)
    assert len(changed.ran) == 1
    assert pd.read_csv(changed.tables["results"])["epochs"].tolist() == [8]
    mine.write_text("like: smoke\nepochs: 8\npoints: 3\n")
    assert len(sweep(plan).ran) == 1, "of other experiments"


def test_a_cell_refuses_to_run_when_it_is_not_what_the_sweep_began_with(plan, tiny):
    cells, _ = read(plan)
    chapter = tiny / "book" / "10-tiny.md"
    chapter.write_text(chapter.read_text() + "\nMore.\n")
    with pytest.raises(SweepError, match="changed after this sweep had begun"):
        cells[0].run()
    assert not cells[0].notebook.exists()


@pytest.mark.parametrize("changed", ["source", "profile", "parameter"])
def test_the_key_of_a_cell_holds_all_that_its_results_depend_on(plan, tiny, changed):
    chapter, profile = chapters.find(tiny, "10-tiny"), profiles.profile("smoke")
    before = key_of(chapter, profile, {"tau": 1.0})
    if changed == "source":
        chapter.path.write_text(chapter.path.read_text() + "\nMore.\n")
    if changed == "profile":
        profile = replace(profile, world=dict(profile.world, n_train=65))
    assert key_of(chapter, profile, {"tau": 2.0 if changed == "parameter" else 1.0}) != before


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("chapter: 10-tiny", SweepError, "lacks grid"),
        ("chapter: 10-tiny\ngrid: {tau: 1}", SettingError, "must be a list"),
        ("chapter: 10-tiny\ngrid: {tau: []}", SweepError, "list with at least one"),
        ("chapter: 10-tiny\ngrid: {taw: [1]}", UnknownNameError, "did you mean 'tau'"),
        ("chapter: 10-tiny\ngird: {tau: [1]}", UnknownNameError, "did you mean 'grid'"),
        ("chapter: 10-tiny\ngrid: {tau: [1]}\nfixed: {tau: 2}", SweepError, "in grid and in fixed"),
        ("chapter: [", SettingError, "not YAML"),
    ],
)
def test_a_wrong_plan_says_what_is_wrong(plan, text, error, says):
    plan.write_text(text)
    with pytest.raises(error, match=says):
        read(plan)


def test_who_is_at_work_on_a_sweep_is_told(plan):
    _, out = read(plan)
    out.mkdir(parents=True)
    told = pytest.raises(SweepError, match=f"process {os.getpid()} of this machine")
    with FileLock(out / ".lock"), named(out / ".holder"), told:
        sweep(plan)
    assert not sweep(plan, jobs=1).failed

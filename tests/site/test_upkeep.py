"""`pullpush cache` and `pullpush doctor` as a reader types them."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from pullpush import cache
from pullpush.cache import locks, sums
from pullpush.cache.inventory import DAY
from pullpush.site.cli import main


@pytest.fixture(autouse=True)
def filled(own_home, monkeypatch):
    """A cache with a world that nobody opened for ten days, and scores of today."""
    monkeypatch.setattr("pullpush.site.upkeep.LITTLE", 0)
    world = cache.cached_dir("worlds", "w", lambda folder: np.save(folder / "stops.npy", np.arange(1000)))
    cache.cached_file("scores", "s.npz", _scores)
    for path in (world, *world.iterdir()):
        os.utime(path, (time.time() - 10 * DAY,) * 2)
    sums._trusted.clear()
    locks._swept.clear()
    return own_home


def _scores(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez_compressed(file, recall=np.ones(3))


def pullpush(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_sizes_are_shown_by_kind(filled):
    *kinds, every = pullpush("cache").output.splitlines()
    assert [line.split()[:3] for line in kinds] == [["scores", "1", "entries"], ["worlds", "1", "entries"]]
    assert every.split()[:2] == ["all", "2"]
    assert every.endswith(f"in {filled}")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--unused", "5"), ["s.npz"]),
        (("--older", "20"), ["s.npz", "w"]),
        (("--kind", "scores"), ["w"]),
        (("--kind", "scores", "--older", "1"), ["s.npz", "w"]),
        (("--unused", "0"), []),
    ],
)
def test_what_is_chosen_is_removed(filled, options, left):
    pullpush("cache", *options)
    assert len(list(filled.glob("*/[!.]*"))) == 2, "shown only"
    done = pullpush("cache", *options, "--prune")
    assert f"removed {2 - len(left)} entries" in done.output
    assert sorted(path.name for path in filled.glob("*/[!.]*")) == left


def test_recordings_and_paid_answers_are_removed_by_name_alone(filled):
    for kind in ("datasets", "answers"):
        (filled / kind / "one").mkdir(parents=True)
    done = pullpush("cache", "--unused", "0", "--prune")
    assert "removed 2 entries" in done.output
    assert f"left: {filled / 'answers' / 'one'} cannot be made again; --kind answers removes it" in done.output
    assert sorted(path.parent.name for path in filled.glob("*/[!.]*")) == ["answers", "datasets"]
    assert "removed 1 entries" in pullpush("cache", "--kind", "datasets", "--prune").output
    assert [path.parent.name for path in filled.glob("*/[!.]*")] == ["answers"]


def test_one_damaged_answer_does_not_take_the_others_along(filled):
    model = filled / "answers" / "model"
    model.mkdir(parents=True)
    (model / "cut.json").write_text("{")
    done = pullpush("doctor", "--repair")
    assert done.exit_code == 1
    assert f"left: {model} cannot be made again" in done.output
    assert model.is_dir()
    assert pullpush("doctor", "--repair", "--kind", "answers").exit_code == 0
    assert not model.exists()


def test_to_prune_wants_a_choice(filled):
    done = pullpush("cache", "--prune")
    assert done.exit_code == 1
    assert "give --kind, --older or --unused" in done.output
    assert "did you mean 'worlds'" in pullpush("cache", "--kind", "world").output


def test_damage_is_named_and_removed(filled):
    path = filled / "worlds" / "w" / "stops.npy"
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    left = filled / "runs" / "r" / ".partial-x"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (1, 1))
    done = pullpush("doctor")
    assert done.exit_code == 1
    assert f"damaged: {path.parent}: stops.npy is not what was written" in done.output
    assert f"left over: {left}" in done.output
    assert "doctor --repair" in done.output
    done = pullpush("doctor", "--repair")
    assert done.exit_code == 0
    assert "removed 1 damaged entries and 1 leftovers" in done.output
    assert not path.exists()
    assert pullpush("doctor").exit_code == 0


@pytest.mark.parametrize("damage", [lambda path: path.touch(), lambda path: (_base(path), os.truncate(path, 5000))])
def test_a_base_that_grows_has_no_checksum_and_is_read(filled, damage):
    path = filled / "text" / "a.sqlite"
    path.parent.mkdir()
    damage(path)
    done = pullpush("doctor", "--kind", "text")
    assert done.exit_code == 1
    assert f"damaged: {path}: a.sqlite cannot be read" in done.output


def _base(path: Path) -> None:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE features (text TEXT)")
        base.executemany("INSERT INTO features VALUES (?)", [("x" * 900,)] * 20)


def test_a_home_that_is_a_file_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "file"))
    done = pullpush("doctor")
    assert done.exit_code == 1
    assert "set PULLPUSH_HOME to a folder" in done.output

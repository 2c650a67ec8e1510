"""What is kept comes back as it was, whole or not at all, and knows what has changed since."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pullpush.lab import kept
from pullpush.lab.experiments import Experiment
from pullpush.lab.kept import KeptError
from pullpush.lab.provenance import stamp
from pullpush.lab.scores import Scores

CODE = {"pullpush.losses._svr:SVR": "1", "pullpush.losses._info_nce:info_nce": "2"}


@pytest.fixture
def scores() -> Scores:
    """Two systems at two radii, one metric by clip and one by clip and language."""
    radii = {"radius": {0.0: {}, 0.5: {}}}
    experiment = Experiment.of("radius", {"a": ("infonce", {}), "b": ("siglip", {})}, seeds=(0, 3), varies=radii)
    experiment = replace(experiment, languages=("eng", "fra"))
    draw = np.random.default_rng(0).random
    clips = {(str(trial), seed): {"R@1": draw((5, 2)), "MRV": draw(5)} for trial, seed in experiment.cells}
    heads = [{"system": trial.system, **trial.where, "seed": seed} for trial, seed in experiment.cells]
    history = pd.DataFrame([head | {"epoch": k, "step": 4 * k, "R@1": 0.1 * k} for head in heads for k in (1, 2, 3, 4)])
    steps = pd.DataFrame([head | {"step": 2.5, "loss": 0.5} for head in heads])
    return Scores(experiment, clips, history, steps, stamp(CODE, seeds=(0, 3), seconds=7.0, command="make it"))


def test_what_was_kept_is_read_as_it_was_found(scores, tmp_path):
    folder = kept.keep(scores, "02-svr", "content", root=tmp_path)
    assert folder == tmp_path / "book" / "measured" / "02-svr" / "radius"
    assert sorted(path.name for path in folder.iterdir()) == [
        "clips.npz",
        "history.csv",
        "scores.csv",
        "stamp.json",
        "steps.csv",
    ]
    found = kept.read(scores.experiment, "02-svr", "content", root=tmp_path)
    assert found.stored
    assert found.stamp == scores.stamp
    pd.testing.assert_frame_equal(found.table, scores.table, rtol=1e-6)
    ours = found.contrast("a", "b", "R@1", {"radius": 0.5, "language": "fra"})
    assert ours.value == pytest.approx(scores.contrast("a", "b", "R@1", {"radius": 0.5, "language": "fra"}).value, 1e-5)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "scores.csv"), scores.table, check_dtype=False, rtol=1e-5)


def test_nothing_is_read_where_nothing_was_kept_or_another_declaration_was(scores, tmp_path):
    assert kept.read(scores.experiment, "02-svr", "content", root=tmp_path) is None
    assert kept.about("02-svr", "radius", root=tmp_path) is None
    kept.keep(scores, "02-svr", "content", root=tmp_path)
    assert kept.read(scores.experiment, "02-svr", "another", root=tmp_path) is None
    assert kept.about("02-svr", "radius", root=tmp_path) == ("content", scores.stamp)


def test_keeping_again_replaces_what_was_kept_and_leaves_nothing_else(scores, tmp_path):
    for content in ("old", "new"):
        folder = kept.keep(scores, "02-svr", content, root=tmp_path)
    assert kept.about("02-svr", "radius", root=tmp_path)[0] == "new"
    assert os.listdir(folder.parent) == ["radius"]


def test_a_failure_while_keeping_leaves_what_was_kept(scores, tmp_path, monkeypatch):
    folder = kept.keep(scores, "02-svr", "old", root=tmp_path)

    def full(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="full"):
        kept.keep(scores, "02-svr", "new", root=tmp_path)
    assert kept.read(scores.experiment, "02-svr", "old", root=tmp_path)
    assert os.listdir(folder.parent) == ["radius"]


@pytest.mark.parametrize("name", ["stamp.json", "clips.npz", "history.csv"])
@pytest.mark.parametrize("damage", [b"", b'{"content": "content"'])
def test_a_damaged_file_is_named_with_the_commands_that_make_it_again(scores, tmp_path, name, damage):
    folder = kept.keep(scores, "02-svr", "content", root=tmp_path)
    (folder / name).write_bytes(damage)
    again = "`pullpush sweep 02-svr --only radius && pullpush keep 02-svr radius` makes it again"
    with pytest.raises(KeptError, match=again):
        kept.read(scores.experiment, "02-svr", "content", root=tmp_path)


def test_a_stamp_that_lacks_something_is_damaged(scores, tmp_path):
    path = kept.keep(scores, "02-svr", "content", root=tmp_path) / "stamp.json"
    data = json.loads(path.read_text())
    del data["stamp"]["code"]
    path.write_text(json.dumps(data))
    with pytest.raises(KeptError, match="is damaged"):
        kept.about("02-svr", "radius", root=tmp_path)


def test_two_processes_cannot_keep_one_table(scores, tmp_path):
    lock = tmp_path / "book" / "measured" / "02-svr" / ".radius.lock"
    lock.parent.mkdir(parents=True)
    program = (
        f"import filelock, sys\nwith filelock.FileLock({str(lock)!r}):\n    print('held', flush=True)\n    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(KeptError, match="another process is keeping radius: wait for it, nothing was changed"):
            kept.keep(scores, "02-svr", "content", root=tmp_path)
        assert not kept.folder_of("02-svr", "radius", root=tmp_path).exists()
        other.communicate("\n")
    assert kept.keep(scores, "02-svr", "content", root=tmp_path).is_dir()


def test_changed_code_is_named(scores):
    assert kept.why_stale(scores.stamp, CODE) == ()
    assert kept.why_stale(scores.stamp, CODE | {"pullpush.losses._svr:SVR": "9"}) == (
        "pullpush.losses._svr:SVR changed",
    )


def test_the_command_names_profile_and_parameters_where_they_differ():
    assert kept.command("sweep", "02-svr", "radius") == "pullpush sweep 02-svr --only radius"
    own = {"profile": "my sizes.yaml", "parameters": {"tau": 0.2}}
    assert kept.command("keep", "02-svr", "radius", **own) == (
        "pullpush keep 02-svr radius --profile 'my sizes.yaml' -p tau 0.2"
    )
    assert Path(kept.folder_of("c", "e", root=Path("r"))) == Path("r/book/measured/c/e")

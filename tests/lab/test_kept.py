"""What is kept comes back as it was, whole or not at all, and knows what has changed since."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pullpush import golden
from pullpush.lab import kept, trunks
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.kept import KeptError
from pullpush.lab.provenance import Stamp, sealed, stamp
from pullpush.lab.root import find_root
from pullpush.lab.scores import Scores
from pullpush.studies import measured

PARTS = ("losses/svr", "losses/infonce")


def scores_of(experiment: Experiment, seed: int = 0) -> Scores:
    """One metric by clip and one by clip and language, made up."""
    draw = np.random.default_rng(seed).random
    clips = {(str(trial), seed): {"R@1": draw((5, 2)), "MRV": draw(5)} for trial, seed in experiment.cells}
    heads = [{"system": trial.system, **trial.where, "seed": seed} for trial, seed in experiment.cells]
    history = pd.DataFrame([head | {"epoch": k, "step": 4 * k, "R@1": 0.1 * k} for head in heads for k in (1, 2, 3, 4)])
    steps = pd.DataFrame([head | {"step": 2.5, "loss": 0.5} for head in heads])
    seeds = {seed for _, seed in experiment.cells}
    made = stamp(golden.versions(*PARTS), seeds=seeds, seconds=7.0, command="make it")
    return Scores(experiment, clips, history, steps, made)


@pytest.fixture
def scores() -> Scores:
    """Two systems at two radii."""
    radii = {"radius": {0.0: {}, 0.5: {}}}
    experiment = Experiment.of("radius", {"a": ("infonce", {}), "b": ("siglip", {})}, seeds=(0, 3), varies=radii)
    return scores_of(replace(experiment, languages=("eng", "fra")))


def keep(scores: Scores, root: Path, content: str = "content") -> Path:
    return kept.keep(scores, "02-svr", content, "but seeds", root=root)


def read(experiment: Experiment, root: Path, content: str = "content") -> Scores | None:
    return kept.read(experiment, "02-svr", content, root=root)


def test_what_was_kept_is_read_as_it_was_found(scores, tmp_path):
    path = keep(scores, tmp_path)
    assert path == tmp_path / "book" / "measured" / "02-svr" / "radius.nc"
    assert sorted(os.listdir(path.parent)) == ["radius.json", "radius.nc"]
    found = read(scores.experiment, tmp_path)
    assert found.stored
    assert found.stamp == scores.stamp
    for cell, values in scores.clips.items():
        for name, value in values.items():
            assert np.array_equal(found.clips[cell][name], value.astype(np.float32)), name
    for name in ("history", "steps"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(scores, name), check_dtype=False, rtol=1e-6)
    pd.testing.assert_frame_equal(found.table, scores.table, rtol=1e-6)


def test_its_record_says_in_few_lines_where_it_comes_from(scores, tmp_path):
    text = keep(scores, tmp_path).with_suffix(".json").read_text()
    told = json.loads(text)
    assert len(text.splitlines()) <= 24
    assert told["declared"]["systems"] == {"a": "infonce", "b": "siglip"}
    assert told["declared"]["varies"] == {"radius": ["0.0", "0.5"]}
    assert told["golden"] == golden.versions(*PARTS)
    assert (told["runs"], told["seeds"], told["seconds"]) == (8, [0, 3], 7.0)
    assert told["processor"] == scores.stamp.processor
    assert told["precision"] == scores.stamp.precision


def test_runs_may_differ_in_clips_metrics_seeds_and_epochs(tmp_path):
    trials = (Trial("long", "infonce", where={"at": "cosine"}), Trial("short", "infonce", where={"at": 24}, seeds=(7,)))
    experiment = Experiment("ragged", trials, (0, 1))
    clips = {
        ("long at=cosine", 0): {"T2A R@1": np.array([1.0, 0.0, np.nan])},
        ("long at=cosine", 1): {"T2A R@1": np.array([0.0, 0.2, 1.0])},
        ("short at=24", 7): {"T2A R@1": np.array([1.0, 1.0]), "accuracy": np.array([-0.5])},
    }
    rows = [("long", "cosine", 0, 1), ("long", "cosine", 0, 2), ("long", "cosine", 1, 1), ("short", 24, 7, 1)]
    table = pd.DataFrame(rows, columns=["system", "at", "seed", "epoch"]).assign(step=3, loss=[0.1, np.nan, 0.2, 0.3])
    keep(Scores(experiment, clips, table, table, stamp({}, seeds=(0, 1, 7), seconds=1.0)), tmp_path)
    found = read(experiment, tmp_path)
    assert list(found.clips) == list(clips)
    for cell, values in clips.items():
        assert list(found.clips[cell]) == list(values)
        for name, value in values.items():
            assert np.array_equal(found.clips[cell][name], value.astype(np.float32), equal_nan=True)
    pd.testing.assert_frame_equal(found.history, table, check_dtype=False)
    assert found.history["at"].tolist() == ["cosine", "cosine", "cosine", 24], "as it was declared"
    assert found.history["epoch"].dtype == np.int64


@pytest.mark.parametrize("kind", ["hits", "fifths", "few", "noise", "negative", "infinite"])
def test_every_kind_of_score_comes_back_to_the_last_bit(tmp_path, kind):
    draw = np.random.default_rng(0)
    values = {
        "hits": draw.integers(0, 2, (40, 300)) / 1,
        "fifths": draw.integers(0, 6, (40, 300)) / 5,
        "few": draw.choice([1 / 3, np.pi, np.nan, 0.0, -0.0], (40, 300)),
        "noise": draw.random((40, 300)),
        "negative": draw.choice([0.0, -0.0, -0.5], (40, 300)),
        "infinite": draw.choice([np.inf, 0.25], (40, 300)),
    }[kind].astype(np.float32)
    experiment = Experiment.of("bits", {"a": ("infonce", {})}, seeds=range(40))
    made = scores_of(experiment)
    names = ("score", "T2A R@1", "T2A R@5", "T2A mAP@10", "A2T R@1")
    clips = {("a", seed): dict.fromkeys(names, values[seed].astype(float)) for seed in range(40)}
    clips = {cell: of | {"R@1": (of["T2A R@1"] + of["A2T R@1"]) / 2} for cell, of in clips.items()}
    path = keep(replace(made, clips=clips), tmp_path)
    for seed, found in enumerate(read(experiment, tmp_path).clips.values()):
        for name in (*names, "R@1"):
            assert found[name].astype(np.float32).tobytes() == values[seed].tobytes(), name
    if kind in ("hits", "fifths"):
        assert path.stat().st_size < 1.2 * values.nbytes, "of six scores"


def test_nothing_is_read_where_nothing_was_kept_or_another_declaration_was(scores, tmp_path):
    assert read(scores.experiment, tmp_path) is None
    assert kept.about("02-svr", "radius", root=tmp_path) is None
    keep(scores, tmp_path)
    assert read(scores.experiment, tmp_path, "another") is None
    assert Stamp.from_dict(vars(kept.about("02-svr", "radius", root=tmp_path))) == scores.stamp


def test_keeping_again_replaces_what_was_kept_and_gives_the_same_bytes(scores, tmp_path):
    first = keep(scores, tmp_path, "old").read_bytes()
    path = keep(scores, tmp_path, "new")
    assert kept.about("02-svr", "radius", root=tmp_path).content == "new"
    assert path.read_bytes() == first
    assert sorted(os.listdir(path.parent)) == ["radius.json", "radius.nc"]


# A process that fails or is killed


STEPS = 9  # of `keep` at which a file is written, renamed or removed


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_killed_at_any_step_leaves_the_old_or_the_new(scores, tmp_path, step):
    keep(scores, tmp_path, "old")
    new, calls = scores_of(scores.experiment, seed=1), []

    def counted(act):
        def call(*given, **options):
            if len(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            calls.append(act)
            return act(*given, **options)

        return call

    if (child := os.fork()) == 0:
        for owner, name in ((os, "replace"), (Path, "write_bytes"), (Path, "write_text"), (Path, "unlink")):
            setattr(owner, name, counted(getattr(owner, name)))
        try:
            keep(new, tmp_path, "new")
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == (signal.SIGKILL if step < STEPS else 0), "steps are killed, all of them"
    before, after = (read(scores.experiment, tmp_path, content) for content in ("old", "new"))
    assert (before is None) != (after is None), "one of them, and whole"
    cell = ("a radius=0.0", 0)
    wanted, found = (scores, before) if before else (new, after)
    assert np.array_equal(found.clips[cell]["R@1"], wanted.clips[cell]["R@1"].astype(np.float32))
    path = keep(new, tmp_path, "newer")
    assert read(scores.experiment, tmp_path, "newer")
    assert not list(path.parent.glob(".radius.*")), "nothing waits"


def test_two_processes_cannot_keep_one_result(scores, tmp_path):
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
            keep(scores, tmp_path)
        assert not list(lock.parent.glob("*.nc"))
        other.communicate("\n")
    assert keep(scores, tmp_path).is_file()


# Damage


AGAIN = r"take it from the repository again .*`pullpush sweep 02-svr --only radius && pullpush keep 02-svr radius`"


@pytest.mark.parametrize("name", ["radius.json", "radius.nc"])
@pytest.mark.parametrize("damage", [b"", b'{"content": "content"', b"[]"])
def test_a_damaged_file_is_named_with_what_to_do(scores, tmp_path, name, damage):
    path = keep(scores, tmp_path).with_name(name)
    path.write_bytes(damage)
    with pytest.raises(KeptError, match=rf"{name} is damaged .*{AGAIN}"):
        read(scores.experiment, tmp_path)


@pytest.mark.parametrize("put", [lambda path: None, lambda path: path.mkdir()])
def test_arrays_without_their_record_are_told(scores, tmp_path, put):
    path = keep(scores, tmp_path).with_suffix(".json")
    path.unlink()
    put(path)
    with pytest.raises(KeptError, match=rf"radius.json is damaged .*{AGAIN}"):
        read(scores.experiment, tmp_path)


@pytest.mark.parametrize("name", ["radius.json", "radius.nc"])
def test_a_digit_that_changed_anywhere_is_told(scores, tmp_path, name):
    path = keep(scores, tmp_path).with_name(name)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7 if name.endswith("json") else len(whole) // 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(KeptError, match=rf"{name.replace('.', '[.]')} is damaged"):
            read(scores.experiment, tmp_path)
    path.write_bytes(whole)
    assert read(scores.experiment, tmp_path)


def test_what_travels_with_the_book_is_whole():
    for path in (find_root() / "book" / "measured").glob("*/*.json"):
        record = kept.about(path.parent.name, path.stem)
        assert hashlib.sha256(path.with_suffix(".nc").read_bytes()).hexdigest() == record.sha256, path
        assert (path.parent.name, path.read_bytes()) == (record.chapter, sealed(record.to_dict()).encode()), path
    assert all(len(measured.read(name)) for name in measured.SOURCES if measured.there(name))
    assert all(trunks.whole(name) for name in trunks.made())


# What has changed


def test_components_that_do_something_else_since_are_named(scores, monkeypatch):
    assert kept.changed(scores.stamp) == ()
    old = replace(scores.stamp, versions={**scores.stamp.versions, "losses/svr": "another"})
    assert kept.changed(old) == ("losses/svr",)
    gone = replace(scores.stamp, versions={"losses/of-old": "1"})
    assert kept.changed(gone) == ("losses/of-old",)


# More seeds


def test_of_a_declaration_with_further_seeds_the_kept_runs_are_there(scores, tmp_path):
    keep(scores, tmp_path)
    more = replace(scores.experiment, seeds=(0, 3, 4))
    found = kept.part(more, "02-svr", "but seeds", root=tmp_path)
    assert list(found.clips) == list(scores.clips)
    joined = found.joined(scores_of(replace(more, seeds=(4,)), seed=2))
    assert len(joined.clips) == 12
    assert joined.stamp.seeds == (0, 3, 4)
    keep(replace(joined, experiment=more), tmp_path, "more")
    whole = read(more, tmp_path, "more")
    assert list(whole.clips) == [(str(trial), seed) for trial, seed in more.cells]
    assert np.array_equal(whole.clips["b radius=0.5", 3]["MRV"], found.clips["b radius=0.5", 3]["MRV"])


@pytest.mark.parametrize("reason", ["none further", "none of them", "another declaration", "component", "damaged"])
def test_what_cannot_be_gone_on_from_is_not(scores, tmp_path, reason):
    if reason == "component":
        scores = replace(scores, stamp=replace(scores.stamp, versions={"losses/svr": "another"}))
    path = keep(scores, tmp_path)
    if reason == "damaged":
        path.write_bytes(b"")
    seeds = {"none further": (0,), "none of them": (8, 9)}.get(reason, (0, 3, 4))
    told = "others" if reason == "another declaration" else "but seeds"
    assert kept.part(replace(scores.experiment, seeds=seeds), "02-svr", told, root=tmp_path) is None


def test_the_command_names_profile_and_parameters_where_they_differ():
    assert kept.command("sweep", "02-svr", "radius") == "pullpush sweep 02-svr --only radius"
    own = {"profile": "my sizes.yaml", "parameters": {"tau": 0.2}}
    assert kept.command("keep", "02-svr", "radius", **own) == (
        "pullpush keep 02-svr radius --profile 'my sizes.yaml' -p tau 0.2"
    )
    assert kept.folder_of("c", root=Path("r")) == Path("r/book/measured/c")

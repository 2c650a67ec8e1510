"""`pullpush golden` names what disagrees and the kept results that stand on it, and accepts by name; and `trunk`."""

import importlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pullpush.golden import FILES, version
from pullpush.lab import kept
from pullpush.lab.experiments import Experiment
from pullpush.lab.provenance import sealed, stamp
from pullpush.lab.scores import Scores
from pullpush.site.cli import main

NAME = "losses/infonce"
VERSIONS = importlib.import_module("pullpush.golden.versions")  # `golden.versions` is its function


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Golden files of one component alone, which a test may change."""
    folder = tmp_path / "files"
    (folder / "losses").mkdir(parents=True)
    shutil.copy(FILES / f"{NAME}.json", folder / "losses")
    monkeypatch.setattr(VERSIONS, "FILES", folder)
    monkeypatch.setattr(VERSIONS, "_known", {})
    return folder / f"{NAME}.json"


def change(file: Path) -> None:
    """Let a golden file say something else: the first number that is none is one more."""
    text = file.read_text()
    file.write_text(re.sub(r"\d\.\d+", lambda number: str(float(number[0]) + 1), text, count=1))
    assert file.read_text() != text


@pytest.fixture
def standing(tiny: Path) -> None:
    """Two results in the book: `one` went through the component, `other` did not."""
    for name, component in (("one", NAME), ("other", "losses/kcl")):
        experiment = Experiment.of(name, {"InfoNCE": ("infonce", {})}, seeds=(0,), long=True)
        table = pd.DataFrame(
            {"system": ["InfoNCE"], "seed": [0], "epoch": [1], "step": [1], "loss": [1.0], "R@1": [0.5]}
        )
        made = stamp({component: version(component)}, seeds=(0,), seconds=7200)
        clips = {("InfoNCE", 0): {"R@1": np.ones(2)}}
        kept.keep(Scores(experiment, clips, table, table, made), "10-tiny", "c", "b", root=tiny)


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["golden", *words])
    return done.exit_code, done.output


def test_a_component_that_does_what_its_file_says_is_no_news(files, standing):
    assert run(NAME) == (0, "all do what their golden files say\n")


def test_one_that_does_not_is_named_with_what_stands_on_it_until_it_is_accepted(files, standing):
    right = files.read_text()
    change(files)
    code, said = run(NAME)
    assert code == 1
    assert re.search(rf"^{NAME}: \w+.* differs by up to 1", said, flags=re.MULTILINE)
    assert "1 kept results stand on it, 2.0 hours of training: 10-tiny/one\n" in said
    assert f"`pullpush golden {NAME} --accept`" in said
    assert files.read_text() != right, "to check changes nothing"
    code, said = run(NAME, "--accept")
    assert code == 0
    assert f"{NAME}: its golden file is written" in said
    assert json.loads(files.read_text()) == json.loads(right)
    assert "no kept results are stale by it" in said, "it was made by what the component does now"
    assert run(NAME) == (0, "all do what their golden files say\n")
    assert run(NAME, "--accept") == (0, f"{NAME}: does what its golden file says\n")


def test_what_was_made_by_the_component_as_it_was_is_stale_once_that_is_accepted(files, tiny, standing):
    change(files)
    path = tiny / "book" / "measured" / "10-tiny" / "one.json"
    record = kept.about("10-tiny", "one", root=tiny)
    was = replace(record, versions={NAME: "what it was"})
    path.write_text(sealed(was.to_dict()), encoding="utf-8")
    _, said = run(NAME, "--accept")
    assert "1 kept results are stale by it, 2.0 hours of training: 10-tiny/one" in said


def test_damage_is_told_with_what_to_do(files, tiny, standing):
    (tiny / "book" / "measured" / "10-tiny" / "other.json").write_text('{"golden": 1}')
    code, said = run(NAME)
    assert code == 1
    assert re.search(r"10-tiny/other: .*other\.json is damaged .*take it from the repository again", said)
    files.write_text("{")
    code, said = run(NAME)
    assert code == 1
    assert f"{files} is damaged" in said
    assert "Traceback" not in said
    assert run(NAME, "--accept")[0] == 0
    assert files.read_text().startswith("{\n")


def test_a_trunk_that_is_made_again_says_whether_it_is_another(monkeypatch):
    note = {"validation R@1": 0.4, "seconds": 61.0, "sha256": "a"}
    for before, other in ((note, False), ({}, False), (note | {"sha256": "b", "validation R@1": 0.39}, True)):
        monkeypatch.setattr("pullpush.lab.trunks.again", lambda name, plans, book, before=before: (before, note))
        done = CliRunner().invoke(main, ["trunk", "single-events"])
        assert done.output.startswith("book/trunks/single-events  validation R@1 0.4000  61 s\n")
        assert ("others than before (R@1 0.3900): train what stands on it again" in done.output) is other

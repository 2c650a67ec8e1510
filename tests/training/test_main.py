import json
import re
from types import SimpleNamespace
from unittest.mock import Mock

import miniature
import numpy as np
import pandas as pd
import pytest
import soundfile
import torch
from click.testing import CliRunner
from safetensors import SafetensorError
from safetensors.torch import load_file

from pullpush.site.cli import main as pullpush
from pullpush.training import checkpoints
from pullpush.training.__main__ import main, parser
from pullpush.training.recipes import from_json

TINY = ["--bank", "synthetic", "--train", "24", "--valid", "8", "--test", "8", "--epochs", "1"]
MODEL = ["--batch-size", "8", "--text", "hashed", "--dim", "8"]
TINY += MODEL


@pytest.fixture
def mine(home, tmp_path):
    """A folder of a reader's own recordings, whose clips have one, two or three captions."""
    rows = []
    for number in range(20):
        split = "train" if number < 12 else "valid" if number < 15 else "test"
        miniature.tone(tmp_path / "mine" / "audio" / f"{number}.wav", number, seconds=1.5)
        rows += [(split, f"{number}.wav", miniature.sentence(number, k)) for k in range(1 + number % 3)]
    miniature.table(tmp_path / "mine" / "captions.csv", rows, ["split", "file_name", "caption"])
    return tmp_path / "mine"


def test_trains_writes_and_goes_on(tmp_path, capsys):
    arguments = [*TINY, "--recipe", "infonce+siglip", "--out", str(tmp_path / "run"), "--diagnostics", "2"]
    arguments += ["--set", "tau=0.1", "--set", "optimiser=adamw"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^epoch 1/1  loss \d+\.\d+  valid R@1 \d+\.\d%$", err, flags=re.MULTILINE)  # without a terminal
    assert json.loads(out.splitlines()[0].removeprefix("best epoch: "))["epoch"] == 1
    one = from_json((tmp_path / "run" / "recipe.json").read_text())
    assert (one.optimiser, one.epochs) == ("adamw", 1)
    assert one.terms[0].options["tau"] == 0.1  # of InfoNCE: it is SigLIP's default
    assert len(pd.read_csv(tmp_path / "run" / "test.csv")) == 10
    assert pd.read_csv(tmp_path / "run" / "steps.csv")["pull"].notna().tolist() == [True, False, True]
    assert main(arguments) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "infonse"], "did you mean 'infonce'"),
        (["--set", "lrr=1"], "did you mean 'lr'"),
        (["--set", "lr"], "NAME=VALUE"),
        (["--bank", "synthetik"], "did you mean 'synthetic'"),
        (["--dataset", "clotho"], "--bank makes scenes, --dataset reads recordings"),
        (["--set", "lr=abc"], "lr must be a number, got 'abc'"),
        (["--set", "encoder_options=5"], "encoder_options must be a mapping, got 5"),
        (["--set", "encoder_options=5", "--freeze", "audio"], "encoder_options must be a mapping, got 5"),
        (["--set", "name=siglip"], "--set cannot name a recipe: give --recipe"),
        (["--set", 'encoder_options={"audio_channels": []}'], "channels must be whole numbers from 1"),
        (["--batch-size", "1"], "batch_size must be at least 2, got 1"),
        (["--seed", "-1"], "--seed a whole number below 2³², got"),
        (["--out", __file__], "--out must be a folder, but"),
        (["--out", f"{__file__}/deeper"], "--out must be a folder, but"),
        (["--out", ""], "--out must be a folder of its own"),
        (["--balance", "speech"], "--balance wants GROUP=WEIGHT, such as speech=2, got 'speech'"),
        (["--balance", "speech=1"], "weights of groups need clips with a column 'group'"),
        (["--captions", "every", "--subset", "957"], "--subset, --captions every goes with recordings"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, capsys, arguments, message):
    assert main([*TINY, "--out", str(tmp_path), *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_run_is_its_data(tmp_path, capsys):
    """What was trained on other scenes is neither returned nor gone on with."""
    common = [*TINY, "--out", str(tmp_path / "run")]
    assert main(common) == 0
    weights = (tmp_path / "run" / "best.safetensors").read_bytes()
    capsys.readouterr()
    assert main([*common, "--world-seed", "7"]) == 1
    assert "holds another run (recipe, seed, data, base or diagnostics)" in capsys.readouterr().err
    assert (tmp_path / "run" / "best.safetensors").read_bytes() == weights
    assert main([*common, "--world-seed", "7", "--restart"]) == 0
    assert (tmp_path / "run" / "best.safetensors").read_bytes() != weights


def test_a_run_that_lost_a_file_says_how_to_go_on(tmp_path, capsys):
    common = [*TINY, "--out", str(tmp_path / "run")]
    assert main(common) == 0
    best = tmp_path / "run" / "best.safetensors"
    for damage in (lambda: best.write_bytes(b"half"), best.unlink):
        damage()
        assert main(common) == 1
        assert "--restart" in capsys.readouterr().err
    assert main([*common, "--restart"]) == 0


@pytest.mark.deep
def test_a_flipped_weight_a_full_disk_and_an_interrupt_are_told(tmp_path, capsys, monkeypatch):
    common = [*TINY, "--out", str(tmp_path / "run")]
    full = SafetensorError("I/O error: No space left on device (os error 28)")
    lost = RuntimeError("gloo: Connection reset by peer\nand where")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", Mock(side_effect=full))
        assert main(common) == 1
    assert "no space left to write" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", Mock(side_effect=KeyboardInterrupt))
        assert main(common) == 130
    assert "goes on from the last checkpoint" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr("pullpush.training.__main__.train_run", Mock(side_effect=lost))
        with pytest.raises(RuntimeError, match="Connection reset"):  # no group, so nobody was lost
            main(common)
        patch.setattr("pullpush.training.__main__.dist", SimpleNamespace(is_initialized=lambda: True))
        assert main(common) == 1
    assert "another process of the group was lost (gloo: Connection reset by peer)" in capsys.readouterr().err
    (tmp_path / "run" / ".partial-x.csv").touch()
    assert main(common) == 0
    assert not list((tmp_path / "run").glob(".partial-*"))
    best = tmp_path / "run" / "best.safetensors"
    held = bytearray(best.read_bytes())
    held[-2] ^= 64
    best.write_bytes(held)
    assert main(common) == 1
    assert "is not what was written" in capsys.readouterr().err


def test_recordings_of_your_own_are_learnt_and_tested(mine, tmp_path, capsys):
    rows = [("a low tone", "['15.wav', '17.wav']"), ("a high tone", "['16.wav', '18.wav', '19.wav', '17.wav']")]
    miniature.table(tmp_path / "queries.csv", rows, ["query", "audio_filenames"])
    arguments = ["--dataset", f"folder:{mine}", "--out", str(tmp_path / "run"), *MODEL, "--epochs", "2", "--overlap"]
    arguments += ["--captions", "every", "--text-cleaning", "dcase", "--queries", str(tmp_path / "queries.csv")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "test: 5 clips, 9 captions, 0 of them another clip's, too" in out
    assert "2 queries with 3.0 right clips each" in out
    assert len(pd.read_csv(tmp_path / "run" / "test.csv")) == 10
    assert set(pd.read_csv(tmp_path / "run" / "queries.csv")["metric"]) >= {"R@1", "mAP@16"}
    assert pd.read_csv(tmp_path / "run" / "overlap.csv").empty
    steps = pd.read_csv(tmp_path / "run" / "steps.csv")
    assert len(steps) == 2 * 3, "12 clips have 24 captions, which make three batches of eight"


def test_what_cannot_be_scored_is_refused_before_it_is_trained(mine, tmp_path, capsys):
    arguments = ["--dataset", f"folder:{mine}", "--out", str(tmp_path / "run"), *MODEL]
    miniature.table(tmp_path / "queries.csv", [("a low tone", "15.wav")], ["query", "file_name"])
    assert main([*arguments, "--queries", str(tmp_path / "queries.csv")]) == 1
    assert "one query alone has no interval: ask two at least" in capsys.readouterr().err
    table = (mine / "captions.csv").read_text().splitlines(keepends=True)
    (mine / "captions.csv").write_text("".join(row for row in table if not row.startswith("valid") or ",12.wav" in row))
    assert main(arguments) == 1
    assert "one clip alone in valid, which has none to be told from" in capsys.readouterr().err


def test_a_test_clip_that_was_heard_in_training_is_named(mine, tmp_path, capsys):
    for name in ("3.wav", "16.wav"):  # the same three seconds of noise in both
        soundfile.write(mine / "audio" / name, np.random.default_rng(0).normal(size=48_000) * 0.1, 16_000)
    arguments = ["--dataset", f"folder:{mine}", "--out", str(tmp_path / "run"), *MODEL, "--epochs", "1", "--overlap"]
    assert main(arguments) == 0
    assert "overlap: 1 of 5 test clips are heard in training" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "run" / "overlap.csv")
    assert found[["train", "test", "by"]].to_numpy().tolist() == [["3.wav", "16.wav", "sound"]]


def test_a_run_goes_on_from_another(mine, tmp_path, capsys):
    common = ["--dataset", f"folder:{mine}", *MODEL, "--epochs", "1", "--set", "lr=1e-9"]
    assert main([*common, "--out", str(tmp_path / "a")]) == 0
    assert main([*common, "--out", str(tmp_path / "b"), "--base", str(tmp_path / "a"), "--seed", "1"]) == 0
    assert main([*common, "--out", str(tmp_path / "c"), "--seed", "1"]) == 0
    first, second, other = (load_file(tmp_path / name / "best.safetensors") for name in "abc")
    weight = "model.audio_projection.layers.0.weight"
    torch.testing.assert_close(first[weight], second[weight])
    assert not torch.allclose(first[weight], other[weight]), "another seed begins elsewhere"


def test_a_run_is_scored_and_searched_by_its_folder(mine, tmp_path, monkeypatch):
    run = str(tmp_path / "run")
    common = ["--dataset", f"folder:{mine}", *MODEL, "--audio", "pitch", "--freeze", "audio", "--out", run]
    assert main([*common, "--epochs", "1"]) == 0
    assert not any("network" in name for name in load_file(f"{run}/best.safetensors"))
    shell = CliRunner()
    scores = shell.invoke(pullpush, ["evaluate", run, "--out", f"{run}/new/scores.csv"])
    assert scores.exit_code == 0, scores.output
    table = pd.read_csv(f"{run}/new/scores.csv").set_index("score")["value"]
    test = pd.read_csv(f"{run}/test.csv").set_index(["direction", "metric"])["value"]
    assert table["T2A R@1"] == pytest.approx(test["T2A", "R@1"])
    assert table["τ"] == pytest.approx(0.07)
    found = shell.invoke(pullpush, ["search", run, miniature.sentence(16), f"folder:{mine}", "--top", "3"])
    assert [line.split()[0] for line in found.output.splitlines()] == ["1.", "2.", "3."], found.output
    assert ".wav" in found.output
    asked = shell.invoke(pullpush, ["evaluate", run, "--clips", "2", "--text-cleaning", "dcase"])
    assert "--clips, --text-cleaning goes with a DATASET" in asked.output
    nothing = shell.invoke(pullpush, ["search", str(mine), "a dog barks"])
    assert "has no recipe.json: give the --out of a finished" in nothing.output
    wrong = {"--device=foo": "--device foo cannot be had", f"--out={run}/test.csv/a": "choose another folder"}
    assert all(told in shell.invoke(pullpush, ["evaluate", run, given]).output for given, told in wrong.items())
    command = tmp_path / "run" / "command.json"
    whole = command.read_text()
    for damaged in (whole[:9], "[]"):
        command.write_text(damaged)
        assert "has a file that is lost or damaged" in shell.invoke(pullpush, ["evaluate", run]).output
    command.write_text(whole)
    miniature.esc50(tmp_path / "data")
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    named = shell.invoke(pullpush, ["evaluate", run, "esc50:fold=2"])
    assert "zero-shot, eng (on 3 of 2,000 clips)" in named.output


def test_a_run_on_a_relative_folder_is_scored_from_anywhere_and_asked_as_it_was_told(mine, tmp_path, monkeypatch):
    run, shell, table = str(tmp_path / "run"), CliRunner(), mine / "captions.csv"
    table.write_text(table.read_text().replace(",A ", ",It's a "))
    monkeypatch.chdir(mine.parent)
    assert main(["--dataset", "folder:mine", *MODEL, "--epochs", "1", "--text-cleaning", "dcase", "--out", run]) == 0
    monkeypatch.chdir(run)
    asked = ([], [f"folder:{mine}"], [f"folder:{mine}", "--text-cleaning", "none"])
    scores = [shell.invoke(pullpush, ["evaluate", run, *words]).output.splitlines() for words in asked]
    own, same, raw = ([line for line in lines if "its caption" in line] for lines in scores)
    assert own == same != raw
    assert len({shell.invoke(pullpush, ["search", run, text]).output for text in ("It's a tone!", "its a tone")}) == 1


def test_help_lists_what_set_takes_with_defaults():
    text = " ".join(parser().format_help().split())
    assert {"lr=0.001", "weight_decay=0.0001", "scalar_lr=30.0"} <= set(text.replace(",", "").split())
    assert "--freeze" in text

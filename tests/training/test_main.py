import json

import pandas as pd
import pytest

from pullpush.errors import UnknownNameError
from pullpush.training.__main__ import main, setting
from pullpush.training.recipes import from_json

TINY = ["--bank", "synthetic", "--train", "24", "--valid", "8", "--test", "8", "--epochs", "1"]
TINY += ["--batch-size", "8", "--text", "hashed", "--dim", "8"]


def test_trains_writes_and_goes_on(tmp_path, capsys):
    arguments = [*TINY, "--recipe", "infonce+siglip", "--out", str(tmp_path / "run"), "--diagnostics", "2"]
    arguments += ["--set", "tau=0.1", "--set", "optimiser=adamw"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[0].removeprefix("best epoch: "))["epoch"] == 1
    one = from_json((tmp_path / "run" / "recipe.json").read_text())
    assert (one.optimiser, one.epochs, one.terms[0].options["tau"]) == (
        "adamw",
        1,
        0.1,
    )  # of InfoNCE: 0.1 is SigLIP's default
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
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, capsys, arguments, message):
    assert main([*TINY, "--out", str(tmp_path), *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_settings_are_json_or_text():
    assert setting("lr=1e-3") == ("lr", 0.001)
    assert setting('languages=["eng", "fra"]') == ("languages", ["eng", "fra"])
    assert setting("optimiser=adamw") == ("optimiser", "adamw")
    assert issubclass(UnknownNameError, ValueError)

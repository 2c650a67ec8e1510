"""`make gpu` on a CPU, in tiny sizes: its tables, their origin, and what the chapters make of both."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
import torch

from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.studies import measured as reader

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu.py"


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a shell runs it."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "lib")}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    """A folder with the tables of three parts."""
    folder = tmp_path_factory.mktemp("measured")
    done = call("correct", "stacked", "tables", "tiles", "adam8bit", "--device", "cpu", "--quick", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_every_loss_is_near_its_reference(measured):
    table = reader.read("gpu-correct", folder=measured)
    assert set(table["inputs"]) == {"float32", "float32, autocast", "bfloat16"}
    assert table["within"].all()
    assert table["loss"].nunique() > 15


def test_the_tables_hold_the_systems_that_were_counted(measured):
    for chapter in ("02-svr", "03-consistency"):
        found = reader.on_gpu(chapter, folder=measured)
        counted = {name for name in reader.read("paper-sizes", chapter=chapter)["system"] if "chunks" not in name}
        assert counted <= set(found["system"])
        for precision in ("bf16", "float32"):
            assert (found[f"{precision}: ms"].astype(float) >= 0).all()
            assert found[f"{precision}: time"][0] == "×1.000 [1.000, 1.000]"


def test_runs_together_end_where_they_end_alone(measured):
    assert (reader.read("gpu-stacked", folder=measured)["loss off"] < 1e-4).all()


@pytest.mark.deep
def test_full_has_a_row_a_system_and_two_processes_the_gradient_of_one(tmp_path):
    assert call("full", "processes", "--device", "cpu", "--quick", "--out", str(tmp_path)).returncode == 0
    assert list(reader.read("gpu-full", folder=tmp_path)["seconds"] > 0) == [True] * 4
    assert reader.read("gpu-processes", folder=tmp_path)["within"].all()


def test_tiles_are_exact(measured):
    table = reader.read("gpu-tiles", folder=measured)
    assert len(set(table["form"])) == 3 * 2
    assert (table[["loss off", "gradient off"]] < 1e-4).all(axis=None)


def test_a_table_says_where_it_comes_from(measured, monkeypatch):
    about = json.loads((measured / "gpu-tiles.json").read_text(encoding="utf-8"))
    assert about["packages"]["torch"] == version("torch")
    said = reader.origin("gpu-tiles", folder=measured).data
    assert about["device"] in said
    assert "--quick" in said
    assert "Tiny sizes" in said
    assert "Older" not in said
    assert set(about["versions"]) == set(reader.SOURCES["gpu-tiles"].parts)
    monkeypatch.setattr(reader, "versions", lambda *names: about["versions"] | {"losses/svr": "another"})
    assert "Older than today's** losses/svr." in reader.origin("gpu-tiles", folder=measured).data


def test_where_no_gpu_has_measured_the_page_says_what_would(tmp_path):
    assert not reader.there("gpu-tables", folder=tmp_path)
    assert "`make gpu`" in reader.origin("gpu-tables", folder=tmp_path).data
    with pytest.raises(DataNotFoundError, match="make gpu"):
        reader.read("gpu-tables", folder=tmp_path)
    with pytest.raises(UnknownNameError, match="gpu-tables"):
        reader.there("gpu-table", folder=tmp_path)


def test_a_chapter_that_was_not_measured_is_refused(tmp_path):
    assert reader.on_gpu("02-svr", folder=tmp_path).empty
    pd.DataFrame({"chapter": ["02-svr"]}).to_csv(tmp_path / "gpu-tables.csv", index=False)
    reader.seal(tmp_path / "gpu-tables.csv", {})
    with pytest.raises(UnknownNameError, match="02-svr"):
        reader.on_gpu("03-svr", folder=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the message asks for")
def test_without_a_gpu_the_command_says_what_it_needs():
    done = call()
    assert done.returncode == 2
    assert "needs an NVIDIA GPU" in done.stderr
    assert "Traceback" not in done.stderr


def test_trying_out_never_replaces_what_the_book_shows():
    done = call("correct", "--device", "cpu", "--quick")
    assert done.returncode == 2
    assert "--out" in done.stderr

import os
import subprocess
import sys

import pandas as pd
import pytest
import torch
from pandas.testing import assert_frame_equal
from ranks import embeddings, network, normalised, of_two, run, work
from safetensors.torch import load_file

from pullpush.errors import TrainingError
from pullpush.losses import info_nce
from pullpush.training.distributed import begin

pytestmark = pytest.mark.deep

COMMAND = ["pullpush.training", "--bank", "synthetic", "--train", "20", "--valid", "6", "--test", "6", "--epochs", "2"]
COMMAND += ["--batch-size", "8", "--dim", "8", "--text", "hashed", "--audio"]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    return of_two(work, tmp_path_factory.mktemp("ranks"))


def test_gathered_rows_are_in_order(two_processes):
    for result in two_processes:
        assert torch.equal(result["whole"], embeddings()[0])


def test_gradient_equals_that_of_one_process_with_the_whole_batch(two_processes):
    audio, text = (x.clone().requires_grad_() for x in embeddings())
    loss = info_nce(audio, text)
    loss.backward()
    for name, whole in (("audio", audio.grad), ("text", text.grad)):
        parts = torch.cat([result[name] for result in two_processes])
        torch.testing.assert_close(parts / 2, whole)  # DistributedDataParallel averages over the two
    for result in two_processes:
        torch.testing.assert_close(result["loss"], loss.detach())


def test_training_equals_that_of_one_process(two_processes):
    alone = run()
    for result in two_processes:
        for name, value in alone["weights"].items():
            torch.testing.assert_close(result["weights"][name], value, rtol=1e-4, atol=1e-6)
        assert_frame_equal(pd.DataFrame(result["steps"]), pd.DataFrame(alone["steps"]), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_normalised_embeddings_gradients_and_statistics_are_those_of_one_process(two_processes, momentum):
    """Masked frames are left out; to rounding in double precision."""
    alone = normalised(network(momentum), slice(None))
    for result in two_processes:
        torch.testing.assert_close(result[str(momentum)], alone, rtol=1e-9, atol=1e-9)


def test_without_it_each_process_normalises_its_own_and_so_it_is_again_afterwards(two_processes):
    alone = normalised(network(), slice(None))
    for result in two_processes:
        assert (result["apart"][0] - alone[0]).abs().max() > 0.01
        torch.testing.assert_close(result["apart"], result["after"])


def launch(tmp_path, name, *launcher, audio="pitch --freeze audio"):
    """The command as a reader types it: frozen features of pitch with a trained projection, or a network."""
    environment = {
        **os.environ,
        "PULLPUSH_HOME": str(tmp_path / "home"),
        "PULLPUSH_PROGRESS": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", *launcher, *COMMAND, *audio.split(), "--out", str(tmp_path / name)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def test_the_documented_command_trains_in_two_processes(tmp_path):
    alone = launch(tmp_path, "one")
    assert alone.returncode == 0, alone.stderr
    two = launch(tmp_path, "two", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m")
    assert two.returncode == 0, two.stderr
    assert two.stdout.count("best epoch") == 1, "the first process alone reports"
    one, other = (load_file(tmp_path / name / "best.safetensors") for name in ("one", "two"))
    torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
    steps = [pd.read_csv(tmp_path / name / "steps.csv") for name in ("one", "two")]
    assert_frame_equal(*steps, rtol=1e-3)


def test_batch_normalisation_of_two_processes_is_that_of_one(tmp_path):
    """Its exactness is tested above; here single precision is rounded, which Adam's first steps magnify."""
    launch(tmp_path, "one", audio="cnn")
    two = launch(tmp_path, "two", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", audio="cnn")
    assert two.returncode == 0, two.stderr
    one, other = (pd.read_csv(tmp_path / name / "steps.csv") for name in ("one", "two"))
    assert_frame_equal(one.head(1), other.head(1), rtol=1e-3)
    assert_frame_equal(one[["loss", "tau"]], other[["loss", "tau"]], rtol=0.05)


def test_a_launcher_that_starts_one_process_in_place_of_two_is_told(tmp_path):
    launcher = ["accelerate.commands.launch", "--cpu", "--num_processes", "2", "-m"]
    result = launch(tmp_path, "run", *launcher)
    assert result.returncode != 0
    assert "error: accelerate launch starts a single process on CPUs" in result.stderr
    assert "torchrun --nproc_per_node N" in result.stderr


def test_processes_that_would_train_alone_are_told(monkeypatch):
    assert begin().num_processes == 1  # from here on accelerate knows of one process
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="2 processes were started, and each would train alone"):
        begin()

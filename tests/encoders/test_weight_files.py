"""Weights of networks of ours: found in files and folders, read as tensors alone, and refused where they differ."""

from __future__ import annotations

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from pullpush.encoders.weight_files import fill_from, read_tensors, weight_file
from pullpush.errors import DataNotFoundError, WeightsError
from pullpush.training.trunk import Published

TENSORS = {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}


class Harmful:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_file_a_folder_and_a_name_in_the_readers_folder_are_found(tmp_path, monkeypatch):
    file = tmp_path / "net.pt"
    torch.save(TENSORS, file)
    assert weight_file(str(file)) == file
    save_file(TENSORS, tmp_path / "model.safetensors")
    assert weight_file(str(tmp_path)) == tmp_path / "model.safetensors"
    monkeypatch.setenv("PULLPUSH_WEIGHTS", str(tmp_path))
    assert weight_file("net.pt") == file


@pytest.mark.parametrize("nested", [None, "model", "state_dict"])
def test_tensors_are_read_from_both_formats_and_from_checkpoints(nested, tmp_path):
    file = tmp_path / "net.pt"
    torch.save(TENSORS if nested is None else {nested: TENSORS, "cfg": {"depth": 3}}, file)
    tensors, rest = read_tensors(file)
    assert tensors.keys() == TENSORS.keys()
    assert rest == ({} if nested is None else {"cfg": {"depth": 3}})
    save_file(TENSORS, tmp_path / "net.safetensors")
    assert torch.equal(read_tensors(tmp_path / "net.safetensors")[0]["weight"], TENSORS["weight"])


def test_a_pickle_that_holds_code_is_refused_and_does_nothing(tmp_path):
    file, touched = tmp_path / "net.pt", tmp_path / "touched"
    file.write_bytes(pickle.dumps(Harmful(touched), protocol=2))
    with pytest.raises(WeightsError, match=r"net.pt does not hold tensors alone .*fetch it again"):
        read_tensors(file)
    assert not touched.exists()


def test_other_tensors_are_refused_with_the_first_that_differs():
    fill_from(nn.Linear(3, 2), TENSORS, "here")
    with pytest.raises(WeightsError, match=r"of here are of another network: bias is not there, expected \(2,\)"):
        fill_from(nn.Linear(3, 2), {"weight": TENSORS["weight"]}, "here")
    with pytest.raises(WeightsError, match=r"weight is \(2, 3\), expected \(2, 4\) \(1 differ\)"):
        fill_from(nn.Linear(4, 2), TENSORS, "here")


def test_what_is_nowhere_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataNotFoundError, match=r"holds none of model.safetensors.*put one there"):
        weight_file(str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"cannot load '/nowhere/at/all.pt'.*give its path as the model"):
        weight_file("/nowhere/at/all.pt")


def test_features_are_named_by_the_content_of_a_file_of_weights(tmp_path):
    file = tmp_path / "net.pt"
    torch.save(TENSORS, file)
    first = Published("passt", {"model": str(file)}).digest
    assert Published("passt", {"model": str(file)}).digest == first
    torch.save({"weight": 2 * TENSORS["weight"]}, file)
    assert Published("passt", {"model": str(file)}).digest != first

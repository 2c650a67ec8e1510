"""Weights of an ONNX graph that is written here: order, quantising nodes, tensors in a file beside it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pullpush.encoders.onnx_weights import layers

WEIGHT, BIAS, LAST = np.array([[1.5, -2.0]], np.float32), np.array([3.0], np.float32), np.array([[7.0]], np.float32)


@pytest.fixture
def path(tmp_path):
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


def test_layers_come_in_the_order_of_the_graph_with_their_own_weights(path):
    first, second = layers(path)
    assert (first.kind, first.name, second.kind, second.name) == ("Gemm", "first", "MatMul", "second")
    assert [tensor.tolist() for tensor in first.tensors] == [WEIGHT.tolist(), BIAS.tolist()]
    assert [tensor.tolist() for tensor in second.tensors] == [LAST.tolist()]

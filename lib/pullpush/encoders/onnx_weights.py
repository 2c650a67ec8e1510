"""Weights in ONNX files: the layers of a graph in their order, each with its tensors; no graph is run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

# They hand on what they were given, rounded: a reader of float weights looks past them.
QUANTISERS = ("QuantizeLinear", "DequantizeLinear", "Identity")


class Layer(NamedTuple):
    """A node of a graph. kind: ONNX's operator ("Conv"); name: of the node; tensors: those of its inputs that are
    weights, in the order of the inputs.
    """

    kind: str
    name: str
    tensors: tuple[Tensor, ...]


def layers(path: Path) -> list[Layer]:
    """The nodes of an ONNX file that have weights, in the order in which they are run.

    Weights that pass through quantising nodes are given as they are stored before those, in float. Tensors in a file
    beside the graph are read from there.

        [layer.kind for layer in layers(path)]  # ["Conv", "Conv", …, "Gemm"]
    """
    import onnx  # a second to import, for what is read once
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    before = {node.output[0]: node.input[0] for node in graph.node if node.op_type in QUANTISERS}

    def source(name: str) -> str:
        while name in before:
            name = before[name]
        return name

    found = []
    for node in graph.node:
        names = [source(name) for name in node.input if source(name) in stored]
        if names and node.op_type not in QUANTISERS:
            tensors = tuple(torch.from_numpy(numpy_helper.to_array(stored[name]).copy()) for name in names)
            found.append(Layer(node.op_type, node.name, tensors))
    return found

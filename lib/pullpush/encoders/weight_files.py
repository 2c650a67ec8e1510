"""Published weights for network classes of ours: from the hub, a folder, a file or an address, as tensors by name.

Only tensors are read: safetensors, pickles by `torch.load(weights_only=True)`, which runs nothing that is in them, or
the layers of an ONNX graph, which is not run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from pullpush.cache import home
from pullpush.encoders.pretrained import fetch, pinned
from pullpush.encoders.wheels import KIND, PLACE
from pullpush.errors import DataNotFoundError, WeightsError
from pullpush.progress import hidden

FILES = ("model.safetensors", "pytorch_model.bin", "model.pt")
NESTED = ("model", "state_dict")  # where checkpoints of training loops hold their tensors
# They hand on what they were given, rounded: a reader of float weights looks past them.
QUANTISERS = ("QuantizeLinear", "DequantizeLinear", "Identity")


def weight_file(model: str, *, files: Sequence[str] = FILES, addresses: Mapping[str, str] | None = None) -> Path:
    """The file with a model's weights, fetched first if it is not on this disk.

    Args:
        model: a file; a folder; the name of a file in the folder that `$PULLPUSH_WEIGHTS` names; a name of
            `addresses`; or a name on the Hugging Face hub, with the commit after an `@` where one is wanted.
        files: what the file is called in a folder, best first; the first is its name on the hub.
        addresses: published names → where their file lies in the web.

    Raises:
        DataNotFoundError: it is in none of these places; the message says what to do.
    """
    for path in [Path(model).expanduser(), Path(os.environ.get(PLACE, "")) / model]:
        if path.is_file():
            return path
        if path.is_dir():
            if inside := [path / name for name in files if (path / name).is_file()]:
                return inside[0]
            raise DataNotFoundError(f"cannot load the weights: {path} holds none of {', '.join(files)}; put one there")
    if address := (addresses or {}).get(model):
        return _downloaded(address)
    from transformers.utils import cached_file

    name, commit = pinned(model)
    return Path(fetch(lambda: cached_file(name, files[0], **commit), model))


def _downloaded(address: str) -> Path:
    import pooch

    file = address.rpartition("/")[2]
    try:  # without a checksum: none is published
        return Path(pooch.retrieve(address, None, fname=file, path=home() / KIND, progressbar=not hidden()))
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            f"cannot fetch {address}: {error}; connect to the network once, or put {file} into the folder that "
            f"${PLACE} names and give its name as the model"
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, on the CPU, and what a checkpoint says beside them (its configuration), else nothing.

    Raises:
        WeightsError: the file is damaged, or holds more than tensors and plain values.
    """
    try:
        safe = path.suffix == ".safetensors"
        found: Any = load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the readers of both formats raise errors of many kinds
        cause = type(error).__name__  # torch's own message advises to run what is in the file
        raise WeightsError(f"{path} does not hold tensors alone ({cause}): fetch it again from its source") from error
    nested = next((name for name in NESTED if name in found and not torch.is_tensor(found[name])), None)
    tensors = found[nested] if nested else found
    rest = {name: value for name, value in found.items() if name != nested} if nested else {}
    return {name: value for name, value in tensors.items() if torch.is_tensor(value)}, rest


def onnx_layers(path: Path, *kinds: str) -> list[tuple[Tensor, ...]]:
    """The weights of an ONNX file's nodes of these kinds, in the order in which they are run, inputs in theirs.

    Weights that pass through quantising nodes are given as they are stored before those, in float. Tensors in a file
    beside the graph are read from there.

        [len(layer) for layer in onnx_layers(path, "Conv", "Gemm")]  # [2, 2, …]: weight and bias
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

    inputs = [[source(name) for name in node.input] for node in graph.node if node.op_type in kinds]
    return [
        tuple(torch.from_numpy(numpy_helper.to_array(stored[name]).copy()) for name in names if name in stored)
        for names in inputs
    ]

"""Published weights for network classes of ours: from the hub, a folder, a file or an address, as tensors by name.

Only tensors are read: safetensors, or pickles by `torch.load(weights_only=True)`, which runs nothing that is in them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from pullpush.cache import home
from pullpush.encoders.huggingface import fetch, pinned
from pullpush.encoders.wheels import PLACE
from pullpush.errors import DataNotFoundError, WeightsError
from pullpush.progress import hidden

FILES = ("model.safetensors", "pytorch_model.bin", "model.pt")
NESTED = ("model", "state_dict")  # where checkpoints of training loops hold their tensors


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
            return _in_folder(path, files)
    if address := (addresses or {}).get(model):
        return _downloaded(address)
    return _from_hub(model, files[0])


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, on the CPU, and what a checkpoint says beside them (its configuration), else nothing.

    Raises:
        WeightsError: the file is damaged, or holds more than tensors and plain values.
    """
    try:
        found: Any = load_file(path) if path.suffix == ".safetensors" else _unpickled(path)
    except Exception as error:  # the readers of both formats raise errors of many kinds
        cause = type(error).__name__  # torch's own message advises to run what is in the file
        raise WeightsError(f"{path} does not hold tensors alone ({cause}): fetch it again from its source") from error
    nested = next((name for name in NESTED if name in found and not torch.is_tensor(found[name])), None)
    tensors = found[nested] if nested else found
    rest = {name: value for name, value in found.items() if name != nested} if nested else {}
    return {name: value for name, value in tensors.items() if torch.is_tensor(value)}, rest


def fill_from(module: nn.Module, tensors: Mapping[str, Tensor], source: object) -> None:
    """Copy tensors into a module that has the same, by name and shape: all of them and no others.

    >>> fill_from(nn.Linear(1, 1), {"weight": torch.zeros(1, 1), "bias": torch.zeros(1)}, "a file")

    Raises:
        WeightsError: they differ; the message names the first.
    """
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in tensors.items()}
    differ = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
    if differ:
        name = differ[0]
        raise WeightsError(
            f"the weights of {source} are of another network: {name} is {given.get(name, 'not there')}, expected "
            f"{expected.get(name, 'no such tensor')} ({len(differ)} differ): name the model's own file or folder"
        )
    module.load_state_dict(dict(tensors))


def _in_folder(folder: Path, files: Sequence[str]) -> Path:
    found = [folder / name for name in files if (folder / name).is_file()]
    if not found:
        raise DataNotFoundError(f"cannot load the weights: {folder} holds none of {', '.join(files)}; put one there")
    return found[0]


def _from_hub(model: str, file: str) -> Path:
    from transformers.utils import cached_file

    name, commit = pinned(model)
    return Path(fetch(lambda: cached_file(name, file, **commit), model))


def _downloaded(address: str) -> Path:
    import pooch

    place = home() / "weights"
    try:
        path = pooch.retrieve(
            address, None, fname=address.rpartition("/")[2], path=place, progressbar=not hidden()
        )  # no checksum: none is published
    except (OSError, ValueError) as error:
        file = address.rpartition("/")[2]
        raise DataNotFoundError(
            f"cannot fetch {address}: {error}; connect to the network once, or put {file} into the folder that "
            f"${PLACE} names and give its name as the model"
        ) from error
    return Path(path)


def _unpickled(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)

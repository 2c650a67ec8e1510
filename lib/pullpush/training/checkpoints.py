"""Runs on disk: tensors in safetensors, the rest as JSON in its header; one file, replaced at once, never half written.

No pickle: a checkpoint can be read without running anything that it holds.
"""

import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from pullpush.cache import atomic_path
from pullpush.encoders.pretrained import Pretrained
from pullpush.errors import DataNotFoundError, TrainingError

CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"
WHOLE = ("epoch", "step", "clips")  # columns of whole numbers; all others are float64


@dataclass
class Progress:
    """How far a run has come: steps done, a row for each step and each epoch, the best epoch's row."""

    step: int = 0
    steps: list[dict[str, float]] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)


def weights(module: nn.Module) -> dict[str, Tensor]:
    """Trainable parameters and buffers, copied to the CPU; frozen parameters come from where they came from."""
    parameters = {name: value for name, value in module.named_parameters() if value.requires_grad}
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = {name: value for name, value in module.state_dict().items() if name not in names}
    return {name: value.detach().cpu().clone().contiguous() for name, value in (parameters | buffers).items()}


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put what `weights` gave into a module of the same kind.

    Raises:
        TrainingError: a tensor is missing or has another shape.
    """
    state = dict(module.named_parameters()) | module.state_dict(keep_vars=True)
    needed = weights(module)
    wrong = [name for name in needed if name not in tensors or tensors[name].shape != needed[name].shape]
    if wrong:
        raise TrainingError(
            f"the weights are of another model: {', '.join(wrong[:5])} missing or of another shape; give the encoders, "
            "their options and dim as recipe.json beside the weights has them"
        )
    with torch.no_grad():
        for name in needed:
            state[name].copy_(tensors[name])


def save(path: Path, objective: nn.Module, optimiser: Optimizer | None, progress: Progress, identity: str) -> None:
    """Write a checkpoint from which `restore` goes on as if nothing had happened.

    identity: says which run it is; optimiser: None for a run that is complete, whose best weights are in a file of
    their own.
    """
    tensors = {f"weights/{name}": value for name, value in weights(objective).items()} if optimiser else {}
    slots = optimiser.state_dict()["state"] if optimiser else {}
    numbers: dict[str, dict[str, Any]] = {}  # some optimisers count their steps in a plain number
    for number, slot in slots.items():
        for name, value in slot.items():
            if torch.is_tensor(value):
                tensors[f"optimiser/{number}/{name}"] = value.detach().cpu().contiguous()
            else:
                numbers.setdefault(str(number), {})[name] = value
    columns = {}  # in their order, which safetensors does not keep
    for name, rows in (("steps", progress.steps), ("history", progress.history)):
        table = pd.DataFrame(rows).astype("float64")
        columns[name] = list(table)
        tensors |= {f"{name}/{column}": torch.tensor(table[column].to_numpy()) for column in table}
    state = {"step": progress.step, "best": progress.best, "identity": identity, "columns": columns}
    state |= {"numbers": numbers} if numbers else {}
    write(path, tensors, state)


def write(path: Path, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
    """A file of tensors and state with a checksum of both; of the best weights, their row of the history."""
    text = json.dumps(state)
    with atomic_path(path) as partial:
        try:
            save_file(tensors, partial, metadata={"state": text, "sum": _sum(tensors, text)})
        except SafetensorError as error:  # of the system: "I/O error: No space left on device (os error 28)"
            if found := re.search(r"os error (\d+)", str(error)):
                raise OSError(int(found[1]), str(error), str(partial)) from error
            raise


def _sum(tensors: Mapping[str, Tensor], state: str) -> str:
    total = zlib.crc32(state.encode())
    for name in sorted(tensors):
        raw = tensors[name].contiguous().flatten().view(torch.uint8).numpy().data
        total = zlib.crc32(raw, zlib.crc32(name.encode(), total))
    return f"{total:08x}"


def restore(path: Path, objective: nn.Module, optimiser: Optimizer, identity: str) -> Progress:
    """Read a checkpoint into the objective and the optimiser.

    Raises:
        TrainingError: the file is damaged, or of another run.
    """
    tensors, state = read(path)
    if state["identity"] != identity:
        raise TrainingError(
            f"{path.parent} holds another run (recipe, seed, data, base or diagnostics): "
            "choose another folder, or begin anew by --restart (resume=False)"
        )
    if kept := _under(tensors, "weights"):
        load_weights(objective, kept)
    slots: dict[int, dict[str, Any]] = {int(number): slot for number, slot in state.get("numbers", {}).items()}
    for name, value in _under(tensors, "optimiser").items():
        number, slot = name.split("/", 1)
        slots.setdefault(int(number), {})[slot] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})
    tables = {name: _rows({c: tensors[f"{name}/{c}"] for c in columns}) for name, columns in state["columns"].items()}
    return Progress(state["step"], best=state["best"], **tables)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and state of a checkpoint.

    Raises:
        DataNotFoundError: there is none.
        TrainingError: it is damaged.
    """
    if not path.is_file():
        raise DataNotFoundError(
            f"no checkpoint at {path}: train that run first, or anew by --restart (resume=False) if it lost the file"
        )
    try:
        with safe_open(path, framework="pt") as file:
            tensors, about = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
            if about.get("sum") not in (None, _sum(tensors, about["state"])):  # earlier versions wrote none
                raise ValueError("it is not what was written")
            return dict(tensors), json.loads(about["state"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise TrainingError(f"{path} is damaged ({error}): train anew by --restart (resume=False)") from error


def load_model(model: nn.Module, base: str | os.PathLike[str]) -> nn.Module:
    """Give a model the best weights of an earlier run; returns the model.

    base: the run's folder, its `Result`, or a file such as its best.safetensors.

    Raises:
        DataNotFoundError, TrainingError: there is no such run, its model is another one, or it has trained what this
            one keeps as published.
    """
    tensors = _under(read(best_file(base))[0], "model", ".")
    frozen = [name for name, part in model.named_modules() if isinstance(part, Pretrained) and part.frozen]
    if lost := [name for name in frozen if any(key.startswith(f"{name}.inside.") for key in tensors)]:
        raise TrainingError(
            f"{base} has trained {', '.join(lost)}, which stays as published here: train it here, too (leave --freeze "
            "out), or take clips that were encoded by that run (see training.encoded)"
        )
    load_weights(model, tensors)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad and name in tensors:  # trained there, kept here
                weight.copy_(tensors[name])
    return model


def best_file(base: str | os.PathLike[str]) -> Path:
    """The file of the best weights of a run given by its folder, its `Result` or that file itself."""
    base = Path(base)
    return base if base.suffix == ".safetensors" else base / BEST


def _under(tensors: Mapping[str, Tensor], prefix: str, separator: str = "/") -> dict[str, Tensor]:
    start = prefix + separator
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def _rows(columns: Mapping[str, Tensor]) -> list[dict[str, float]]:
    """Back from columns to rows."""
    lists = {name: (value.long() if name in WHOLE else value).tolist() for name, value in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]

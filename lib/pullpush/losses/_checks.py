"""Checks at the door of every loss: wrong shapes and values get a message that names the argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import torch
from torch import Tensor

Direction = Literal["t2a", "a2t", "both"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)

# Axes of what is not (N, d); types of what is not floating point.
AXES = {"texts": ("N", "K", "d"), "present": ("N", "K"), "teacher_similarity": ("N", "N")}
AXES |= dict.fromkeys(("clusters", "ids", "text_ids"), ("N",))
TYPES = {"present": torch.bool, "clusters": torch.int64, "ids": torch.int64, "text_ids": torch.int64}
TYPE_NAMES = {torch.bool: "boolean", torch.int64: "int64"}


def check_shapes(*, groups: bool = False, **tensors: Tensor) -> None:
    """Require tensors of the shapes and types that their names say, `(N, d)` floating point unless AXES and TYPES do.

    Args:
        groups: they may also all be `(G, N, d)`.
        tensors: by the name of the argument.

    Raises:
        ValueError: naming the argument, the shape that came and the one expected.
        TypeError: the same for types.
    """
    for name, tensor in tensors.items():
        wanted = TYPES.get(name)
        kind = tensor.dtype if torch.is_tensor(tensor) else type(tensor).__name__
        if wanted is None and not (torch.is_tensor(tensor) and tensor.is_floating_point()):
            raise TypeError(f"{name} must be a floating-point tensor of shape {_shape(axes_of(name))}, got {kind}")
        if wanted is not None and kind != wanted:
            raise TypeError(f"{name} must be {TYPE_NAMES[wanted]}, got {kind}")
    grouped = groups and all(tensor.ndim == 3 for tensor in tensors.values())
    sizes: dict[str, tuple[str, int]] = {}
    for name, tensor in tensors.items():
        axes = ("G", *axes_of(name)) if grouped else axes_of(name)
        sized = dict(zip(axes, tensor.shape, strict=False))
        if tensor.ndim != len(axes) or not all(size for axis, size in sized.items() if axis != "d"):
            least = ", ".join(f"{axis} ≥ 1" for axis in dict.fromkeys(axes) if axis != "d")
            raise ValueError(f"{name} must have shape {_shape(axes)} with {least}, got {tuple(tensor.shape)}")
        for axis, size in zip(axes, tensor.shape, strict=True):
            first, expected = sizes.setdefault(axis, (name, size))
            if size != expected:
                raise ValueError(
                    f"{first} with {axis} = {expected} and {name} {tuple(tensor.shape)}, which must be {_shape(axes)}, "
                    f"must have one {axis}: row i of each is a pair"
                )


def axes_of(name: str) -> tuple[str, ...]:
    """The axes of an argument: `axes_of("texts") == ("N", "K", "d")`."""
    return AXES.get(name, ("N", "d"))


def check_temperature(tau: float | Tensor) -> None:
    """Require a positive temperature (a Python number; a learnable tensor is clamped by its module)."""
    if not torch.is_tensor(tau) and not tau > 0:
        raise ValueError(f"tau must be positive, got {tau}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Require one of the values that an option has."""
    if value not in (every := tuple(choices)):
        raise ValueError(f"{name} must be one of {every}, got {value!r}")


def _shape(axes: tuple[str, ...]) -> str:
    return f"({', '.join(axes)}{',' * (len(axes) == 1)})"

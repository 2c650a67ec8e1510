"""Checks at the doors of losses, forces and metrics: what would be silently wrong gets a message that names it.

Shapes and types cost microseconds. Values cost a pass, and on a GPU a wait for it: in losses those of single numbers
are looked at, on the CPU; in metrics all of them.
"""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, get_args

import torch
from torch import Tensor

Direction = Literal["t2a", "a2t", "both"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)

# Axes of what is not (N, d); types of what is not floating point.
AXES = {"texts": ("N", "K", "d"), "present": ("N", "K"), "taken": ("N", "K"), "teacher_similarity": ("N", "N")}
AXES |= dict.fromkeys(("clusters", "ids", "text_ids"), ("N",)) | {"perpendicular": ("N", "N")}
TYPES = dict.fromkeys(("present", "taken"), torch.bool) | dict.fromkeys(("clusters", "ids", "text_ids"), torch.int64)
LARGEST = 1e18  # of numbers: float32 has their squares, int64 the whole ones
ROUNDING = 2e-3  # of relevance that is a cosine, in half precision
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
        kind = _type_of(tensor)
        if wanted is None and not (torch.is_tensor(tensor) and tensor.is_floating_point()):
            raise TypeError(f"{name} must be a floating-point tensor of shape {_shape(axes_of(name))}, got {kind}")
        if wanted is not None and kind != wanted:
            raise TypeError(f"{name} must be {TYPE_NAMES[wanted]}, got {kind}")
        _check_dense(name, tensor)
    grouped = groups and all(tensor.ndim == 3 for tensor in tensors.values())
    sizes: dict[str, tuple[str, int]] = {}
    for name, tensor in tensors.items():
        axes = ("G", *axes_of(name)) if grouped else axes_of(name)
        sized = dict(zip(axes, tensor.shape, strict=False))
        if tensor.ndim != len(axes) or not all(sized.values()):
            least = ", ".join(f"{axis} ≥ 1" for axis in dict.fromkeys(axes))
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


def check_temperature(tau: Any, name: str = "tau") -> None:
    """Require a positive, finite temperature: a number, or a 0-d tensor."""
    check_number(name, tau, above=0)
    check_number(name, tau, least=1 / LARGEST)


def check_number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    or_none: bool = False,
) -> None:
    """Require a finite number in a range; a 0-d tensor will do.

    Raises:
        TypeError: it is no number: a text, a truth value, an array.
        ValueError: it is NaN, infinite or out of range, or a tensor of several.

    >>> check_number("bias", float("nan"))
    Traceback (most recent call last):
    ValueError: bias must be finite, got nan
    """
    if value is None and or_none:
        return
    if torch.is_tensor(value):
        if value.ndim:
            raise ValueError(f"{name} must be a number or a 0-d tensor, got a tensor of shape {tuple(value.shape)}")
        if value.device.type != "cpu" or torch.compiler.is_compiling() or is_batched():
            return
        value = value.detach().item()
    check_real(name, value)
    if not abs(value) < LARGEST:
        raise ValueError(
            f"{name} must be finite{f' and below {LARGEST:g}' if abs(value) < math.inf else ''}, got {value}"
        )
    if not (value > above and least <= value <= most):
        ends = ["positive"] * (above == 0) + [f"above {above}"] * (above not in (0, -math.inf))
        ends += [f"at least {least}"] * (least > -math.inf) + [f"at most {most}"] * (most < math.inf)
        raise ValueError(f"{name} must be {' and '.join(ends)}, got {value}")


def is_batched() -> bool:
    """Whether this runs under `torch.vmap`, where no number can be looked at."""
    return torch._C._functorch.maybe_current_level() is not None


def check_real(name: str, value: Any) -> None:
    """Require a number, whichever."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {kind_of(value)} {_short(value)}".rstrip())


def check_count(name: str, value: Any, *, least: int = 1, most: float = math.inf) -> None:
    """Require a whole number in a range.

    >>> check_count("k", 0)
    Traceback (most recent call last):
    ValueError: k must be at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {kind_of(value)} {_short(value)}")
    if not least <= int(value) <= most:
        raise ValueError(
            f"{name} must be at least {least}{f' and at most {most}' if most < math.inf else ''}, got {value}"
        )


def check_chance(k: Any, relevant: Any, items: Any) -> None:
    """Require a cut-off, and a number of relevant items among all."""
    check_count("k", k)
    check_count("items", items)
    check_count("relevant", relevant, most=items)


def check_cutoffs(**cutoffs: Sequence[int]) -> None:
    """Require sequences of whole numbers from 1 on: `check_cutoffs(ks=(1, 5))`."""
    for name, values in cutoffs.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise TypeError(f"{name} must be a sequence of whole numbers such as (1, 5, 10), got {kind_of(values)}")
        for value in values:
            check_count(f"{name}: a cut-off", value)


def check_tensors(**tensors: Any) -> None:
    """Require floating-point tensors without NaN or infinity.

    >>> check_tensors(audio=torch.tensor([[0.0, float("nan")]]))
    Traceback (most recent call last):
    ValueError: audio has 1 value that is NaN or infinite, the first at [0, 1]
    """
    check_floats(**tensors)
    for name, tensor in tensors.items():
        if not (finite := tensor.isfinite()).all():
            bad = (~finite).nonzero()
            many = "1 value that is" if len(bad) == 1 else f"{len(bad)} values that are"
            raise ValueError(f"{name} has {many} NaN or infinite, the first at {bad[0].tolist()}")


def check_floats(**tensors: Any) -> None:
    """Require floating-point tensors."""
    for name, tensor in tensors.items():
        if not torch.is_tensor(tensor) or not tensor.is_floating_point():
            raise TypeError(f"{name} must be a floating-point tensor, got {_type_of(tensor)}")
        _check_dense(name, tensor)


def _check_dense(name: str, tensor: Tensor) -> None:
    if tensor.is_meta or tensor.layout != torch.strided:
        kind = "one on the meta device, without values" if tensor.is_meta else f"{tensor.layout} (use .to_dense())"
        raise TypeError(f"{name} must be a dense tensor, got {kind}")


def check_one_dtype(**tensors: Tensor) -> None:
    """Require tensors of one floating-point type."""
    check_floats(**tensors)
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        kinds = " and ".join(f"{name} {tensor.dtype}" for name, tensor in tensors.items())
        raise TypeError(f"{kinds} must have one type")


def check_embeddings(**tensors: Any) -> None:
    """Require tensors of one floating-point type without NaN or infinity, to be compared with each other."""
    check_tensors(**tensors)
    check_one_dtype(**tensors)


def check_alike(axes: int = 1, **tensors: Any) -> None:
    """Require floating-point tensors of one shape with so many axes at least, so that none is broadcast by accident."""
    check_floats(**tensors)
    for name, tensor in tensors.items():
        if tensor.ndim < axes:
            raise ValueError(f"{name} must have shape (N, d), got {tuple(tensor.shape)}")
    if len({tensor.shape for tensor in tensors.values()}) > 1:
        shapes = " and ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(f"{shapes} must have one shape")


def check_numbers_of(name: str, values: Any, rows: int, below: int) -> None:
    """Require `(rows,)` whole numbers from 0 to `below` − 1: labels, rows of candidates, clips."""
    if not torch.is_tensor(values) or values.is_floating_point() or values.dtype == torch.bool:
        raise TypeError(f"{name} must be a tensor of whole numbers, got {_type_of(values)}")
    if values.shape != (rows,):
        raise ValueError(f"{name} must have shape ({rows},), one for each row, got {tuple(values.shape)}")
    low, high = (int(values.min()), int(values.max())) if rows else (0, 0)
    if rows and not 0 <= low <= high < below:
        raise ValueError(f"{name} must be 0 … {below - 1}, got {low} … {high}")


def check_relevance(relevance: Any) -> None:
    """Require relevance that is boolean, or numbers in [0, 1]."""
    if not torch.is_tensor(relevance) or not (relevance.dtype == torch.bool or relevance.is_floating_point()):
        raise TypeError(f"relevance must be a boolean or floating-point tensor, got {_type_of(relevance)}")
    if relevance.dtype == torch.bool:
        return
    inside = (relevance >= 0) & (relevance <= 1 + ROUNDING)
    if not inside.all():
        worst = relevance[~inside][0].item()
        raise ValueError(f"relevance must be in [0, 1], got {worst:.6g}: divide grades by the highest")


def check_square(similarity: Any) -> Tensor:
    """Require `(N, N)`, and give the relevance of its diagonal."""
    check_floats(similarity=similarity)
    if similarity.ndim != 2 or len(similarity) != similarity.shape[1]:
        raise ValueError(f"similarity {tuple(similarity.shape)} is not square: give `relevance`, which items are right")
    return torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Require one of the values that an option has."""
    every = tuple(choices)
    if not isinstance(value, str) or value not in every:
        raise ValueError(f"{name} must be one of {every}, got {value!r}")


def _shape(axes: tuple[str, ...]) -> str:
    return f"({', '.join(axes)}{',' * (len(axes) == 1)})"


def _type_of(value: Any) -> torch.dtype | str:
    return value.dtype if torch.is_tensor(value) else kind_of(value)


def kind_of(value: Any) -> str:
    """What something is, in words: "a NumPy array (torch.from_numpy makes a tensor of it)"."""
    if type(value).__module__ == "numpy" and hasattr(value, "ndim") and value.ndim:
        return "a NumPy array (torch.from_numpy makes a tensor of it)"
    return "None" if value is None else type(value).__name__


def _short(value: Any) -> str:
    return "" if value is None or hasattr(value, "shape") else repr(value)[:40]

"""What losses, forces and metrics compute with: single precision at least, for similarities near 1 and differences of
near vectors do not bear bfloat16; and gradients other than those of a value.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from pullpush.checks import check_shapes, is_batched

# The threshold of `softplus` from which it is the identity; the default, 20, would cut float64 to nine digits.
EXACT = 40

# Embeddings that the caller brings to unit length.
UNIT = ("audio", "text", "texts", "other", "english", "view1", "view2", "second_text", "premise", "second_premise")
UNIT += ("entailment", "contradiction")
P = ParamSpec("P")
T = TypeVar("T")
_DONE: set[str] = set()  # kinds of devices on which lengths are looked at no more


@contextmanager
def checked(*, groups: bool = False, **tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """What every loss begins with: shapes are checked, autocast is off, and all has one floating-point type.

    Args:
        groups: tensors may be `(G, N, d)`.
        tensors: by the names whose shapes and types `check_shapes` knows, in the order in which they come out, float32
            in place of the half-precision types, else the widest that came; whole numbers stay as they are.

    Raises:
        ValueError, TypeError: see `check_shapes`.

    >>> with checked(audio=torch.eye(2, dtype=torch.bfloat16), text=torch.eye(2)) as (a, t):
    ...     a.dtype
    torch.float32
    """
    check_shapes(groups=groups, **tensors)
    first, *_ = tensors.values()
    if first.device.type not in _DONE and not torch.compiler.is_compiling() and not is_batched():
        _look_at_lengths(first.device.type, {name: tensors[name] for name in UNIT if name in tensors})
    with no_autocast(first):
        yield widen(*tensors.values())


def _look_at_lengths(device: str, embeddings: Mapping[str, Tensor]) -> None:
    """Warn, once, of embeddings not of unit length (zeros are missing texts); on a GPU of the first batch alone."""
    if device != "cpu":
        _DONE.add(device)
    for name, x in embeddings.items():
        length = torch.linalg.vector_norm(x.detach().float(), dim=-1)
        low, high = torch.aminmax(length)
        if not 0.98 <= low <= high <= 1.02 and ((length - 1).abs() > 0.02).logical_and(length > 0).any():
            _DONE.add(device)
            warnings.warn(
                f"{name} is not of unit length (mean norm {length.mean():.3g}), as losses of this library expect: "
                f"torch.nn.functional.normalize({name}, dim=-1). This is said once",
                stacklevel=5,
            )
            return


def widen(*tensors: Tensor) -> tuple[Tensor, ...]:
    """One dtype for all that are floating point: float32 in place of the half-precision types, else the widest."""
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in tensors) else torch.float32
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in tensors)


def no_autocast(tensor: Tensor | None) -> AbstractContextManager[Any]:
    """A context in which autocast is off on the device of a tensor, where there is one that has autocast."""
    compiles = torch.compiler.is_compiling()  # then nobody can ask, and it is there
    if tensor is None or not (compiles or torch.amp.is_autocast_available(tensor.device.type)):
        return nullcontext()
    return torch.autocast(tensor.device.type, enabled=False)


def single(x: Any) -> Any:
    """A floating-point tensor in float32 at least; what is none as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32)) if isinstance(x, Tensor) and x.is_floating_point() else x


def in_single(function: Callable[P, T]) -> Callable[P, T]:
    """The function outside autocast, with float32 tensors in place of those of half precision.

    >>> in_single(lambda x: x @ x.T)(torch.ones(1, 2, dtype=torch.bfloat16))
    tensor([[2.]])
    """

    @wraps(function)
    def wide(*given: P.args, **named: P.kwargs) -> T:
        first = next((x for x in (*given, *named.values()) if isinstance(x, Tensor)), None)
        with no_autocast(first):
            of_names = {name: single(x) for name, x in named.items()}
            return function(*map(single, given), **of_names)  # pyrefly: ignore[invalid-param-spec]

    return wide


def surrogate(value: Tensor, *ways: Tensor) -> Tensor:
    """A surrogate gradient (straight-through): the numbers of `value`, to the last bit, with the gradient of the sum of
    `ways`; all of one shape and finite.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = surrogate(x.round(), 2 * x)
    >>> y.item(), torch.autograd.grad(y, x)
    (3.0, (tensor(2.),))
    """
    result = value.detach()
    for way in ways:
        result = result + (way - way.detach())
    return result

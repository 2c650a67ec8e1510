"""What probes are made of: how they are declared, small fixed inputs, and what is left of large outputs.

    METRICS = Probes("metrics", 1e-6)

    @METRICS("closeness")  # the component "metrics/closeness"
    def closeness() -> Values: ...

Inputs are the same numbers on every machine, whatever the random numbers of the process are.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.errors import PullPushError
from pullpush.golden.compare import SMALL, Values, differences

FEW = 8  # numbers that stay as they are
LOOKS = 3  # at more of them
PIECES = 6  # of a waveform, that are looked at
NOTHING = 1e-12  # what is smaller is what rounding left of zero
KINDS: "dict[str, Probes]" = {}  # of the modules that are imported
Declared = TypeVar("Declared", bound=Callable[[], Values])


class GoldenError(PullPushError, RuntimeError):
    """A golden file that is damaged, or a component that has no probe."""


@dataclass(eq=False)
class Probes:
    """The probes of a kind: what `of_card` gives of each card, and functions that are declared one by one.

    What a probe gives may lie in mappings within mappings, whose names stand one after the other: "svr: value".

    kind: what names of components begin with; tolerance, small: see `compare.differences`; cards: the names of all that
    `of_card` can probe; look: what is left of a float tensor; within: in which context one of a name runs.
    """

    kind: str
    tolerance: float
    small: float = SMALL
    cards: Callable[[], Collection[str]] = tuple
    of_card: Callable[[str], Values] | None = None
    look: Callable[[Tensor], Any] | None = None
    within: Callable[[str], AbstractContextManager] = nullcontext
    functions: dict[str, Callable[[], Values]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        KINDS[self.kind] = self

    def __call__(self, name: str) -> Callable[[Declared], Declared]:
        """Declare a function as the probe of a component of this name."""

        def declare(function: Declared) -> Declared:
            self.functions[name] = function
            return function

        return declare

    def names(self) -> set[str]:
        """Of cards, the reader's included, and of functions."""
        return {*self.cards(), *self.functions}

    def run(self, name: str) -> dict[str, Any]:
        """What a component gives.

        Raises:
            GoldenError: a card has the name of a function; or what `of_card` raises.
        """
        if name in self.functions and name in self.cards():
            raise GoldenError(f"{name!r} is called as a part of the library is ({self.kind}): give it another name")
        with self.within(name):
            values = self.functions[name]() if name in self.functions else self.of_card(name)  # pyrefly: ignore
            return self.flat(values)

    def differences(self, found: Values, wanted: Values) -> dict[str, str]:
        """What differs, and how."""
        return differences(found, wanted, self.tolerance, self.small)

    def flat(self, values: Values) -> dict[str, Any]:
        """Values of mappings within mappings by their joined names, and what is left of each.

        >>> Probes("doctest", 0.0).flat({"svr": {"": 1.0, "gradient": {"of audio": 2.0}}})
        {'svr': 1.0, 'svr: gradient: of audio': 2.0}
        """
        return dict(self._flat(values, ""))

    def _flat(self, values: Values, before: str) -> Iterator[tuple[str, Any]]:
        for name, value in values.items():
            joined = ": ".join(filter(None, (before, name)))
            if isinstance(value, Mapping):
                yield from self._flat(value, joined)
            else:
                yield joined, self._left(value)

    def _left(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._left(item) for item in value]
        if torch.is_tensor(value):
            value = value.detach()
            return self.look(value) if self.look and value.ndim and value.is_floating_point() else value
        return value


def numbers(*shape: int, seed: int) -> Tensor:
    """Normal random numbers, float64."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sphere(*shape: int, seed: int) -> Tensor:
    """Random points of unit length, float64."""
    return F.normalize(numbers(*shape, seed=seed), dim=-1)


def seen(values: Tensor | np.ndarray) -> Tensor:
    """Up to eight numbers as they are; of more, three sums with fixed random weights, which see a change of any.

    >>> seen(torch.tensor([0.5, 1e-15]))
    tensor([0.5000, 0.0000], dtype=torch.float64)
    >>> before = torch.zeros(100)
    >>> (seen(before) != seen(before.index_fill(0, torch.tensor(70), 1.0))).tolist()
    [True, True, True]
    """
    flat = torch.as_tensor(values).detach().cpu().double()
    if flat.numel() > FEW:
        flat = numbers(LOOKS, flat.numel(), seed=flat.numel()) @ flat.flatten() / math.sqrt(flat.numel())
    return torch.where(flat.abs() < NOTHING, 0.0, flat)


def looks(wave: Tensor | np.ndarray) -> Tensor:
    """What a waveform is like in each of its parts; another length gives other numbers."""
    return torch.cat([seen(part) for part in torch.as_tensor(wave).tensor_split(PIECES)])

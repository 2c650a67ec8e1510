"""Small fixed inputs of probes, and what they keep of large outputs: the same numbers on every machine."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

FEW = 8  # numbers that are kept as they are
LOOKS = 3  # at more of them
NOTHING = 1e-12  # what is smaller is what rounding left of zero


def numbers(*shape: int, seed: int) -> Tensor:
    """Normal random numbers, float64, whatever the random numbers of the process are."""
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

"""Surrogate gradients: what a tensor is worth, and whose gradient it passes on, chosen apart (straight-through)."""

from __future__ import annotations

from torch import Tensor


def surrogate(value: Tensor, *ways: Tensor) -> Tensor:
    """The numbers of `value`, to the last bit, with the gradient of the sum of `ways`; all of one shape and finite.

    >>> import torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = surrogate(x.round(), 2 * x)
    >>> y.item(), torch.autograd.grad(y, x)
    (3.0, (tensor(2.),))
    """
    result = value.detach()
    for way in ways:
        result = result + (way - way.detach())
    return result

"""The contrast of N queries with N keys in blocks of rows, so that no N × N matrix is ever kept.

`svr` goes through it. At large N it would do the same for InfoNCE (queries text/τ) and, with another function of the
scores, for SigLIP; as they are, both keep one N × N matrix of similarities for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

# Similarities held at once, 64 MiB in float32: many enough to fill a GPU, few enough not to count beside an encoder.
BLOCK = 2**24


def blocked_contrast(query: Tensor, key: Tensor, *, positive_in_denominator: bool = True) -> Tensor:
    """Mean of −log softmax of query·keyᵀ at its diagonal, as `cross_entropy(query @ key.T, arange(N))`, in blocks.

    Args:
        query: `(G, N, d)` float32 or float64, already divided by τ; groups are contrasted each among itself.
        key: `(G, N, d)`; key i is the positive of query i.
        positive_in_denominator: whether the positive is one of the candidates.

    Returns:
        0-d, the mean over N and G. Differentiable once.

    Example:
        >>> pairs = torch.eye(3)[None]
        >>> blocked_contrast(pairs / 0.5, pairs)
        tensor(0.2395)
    """
    differentiate = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    return _Contrast.apply(query, key, positive_in_denominator, differentiate)


def _blocks(groups: int, n: int) -> Iterator[tuple[slice, slice]]:
    """Groups and rows whose similarities fit into BLOCK: many whole groups at a time, or rows of one group."""
    many, step = max(1, BLOCK // n**2), max(1, BLOCK // n)
    for group in range(0, groups, many):
        for row in range(0, n, step):
            yield slice(group, group + many), slice(row, row + step)


class _Contrast(torch.autograd.Function):
    """`blocked_contrast`, its gradient taken in the forward pass while a block is at hand: three matrix products in
    all, as many as autograd needs, but no N × N matrix is kept.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, include: bool, differentiate: bool) -> Tensor:
        groups, n, _ = query.shape
        gradients = (torch.empty_like(query), torch.zeros_like(key)) if differentiate else ()
        total = query.new_zeros(())
        for group, row in _blocks(groups, n):
            rows, keys = query[group, row], key[group]
            scores = torch.bmm(rows, keys.mT)  # (G, B, N) of this block
            diagonal = scores.diagonal(row.start, 1, 2)  # row b's positive is column start + b
            positive = diagonal.clone()
            diagonal.fill_(-torch.inf)
            largest = scores.amax(dim=2)
            pushes = scores.sub_(largest[..., None]).exp_()  # exp(s_j − max s), in place; 0 for the positive
            total_push = pushes.sum(dim=2)
            log_sum = largest + total_push.log()
            loss = log_sum - positive  # Eq. 6 as printed: the denominator sums over negatives only
            if include:
                # −log P⁺ = log(1 + Σ_j exp(s_j − s⁺)): exact where P⁺ rounds to 1. The default threshold of 20 would
                # cut float64 to nine digits.
                loss = F.softplus(loss, threshold=40)
            total += loss.sum()
            if differentiate:
                # P_sup of negative j is pushes_j·scale (Eq. 3); scaling rows of d costs less than rows of N.
                scale = (largest - positive - loss).exp()[..., None]
                diagonal.copy_(-total_push)  # times scale: P⁺ − 1, or −1 without the positive in the denominator
                torch.bmm(pushes, keys, out=gradients[0][group, row]).mul_(scale)  # pyrefly: ignore[bad-index]
                gradients[1][group].baddbmm_(pushes.mT, scale * rows)  # pyrefly: ignore[bad-index]
        ctx.save_for_backward(*gradients)
        return total / (groups * n)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override]
        groups, n, _ = ctx.saved_tensors[0].shape
        scale = gradient / (groups * n)
        return *(scale * saved for saved in ctx.saved_tensors), None, None

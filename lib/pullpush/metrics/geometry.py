"""Geometry of the joint space: alignment and uniformity (Wang & Isola, 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def alignment(audio: Tensor, text: Tensor, *, alpha: float = 2.0) -> Tensor:
    """Mean ‖a − t‖^α over positive pairs; `(N, d)`, `(N, d)` L2-normalised → 0-d. 0 is perfect.

    >>> alignment(torch.eye(2), torch.eye(2).flip(0))
    tensor(2.0000)
    """
    return (audio - text).norm(dim=1).pow(alpha).mean()


def uniformity(embeddings: Tensor, *, t: float = 2.0) -> Tensor:
    """log of the mean of exp(−t‖x − y‖²) over distinct pairs; `(N, d)` L2-normalised, N ≥ 2 → 0-d.

    Lower is more uniform; 0 means that all points coincide.

    >>> uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    tensor(-8.)
    """
    if len(embeddings) < 2:
        raise ValueError("uniformity needs at least two embeddings")
    squared = torch.nn.functional.pdist(embeddings).square()
    # log-mean-exp keeps far points from underflowing to log 0.
    return torch.logsumexp(-t * squared, dim=0) - math.log(len(squared))

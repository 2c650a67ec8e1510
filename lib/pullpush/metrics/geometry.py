"""Geometry of the joint space: alignment and uniformity (Wang & Isola, 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pullpush.checks import check_alike, check_number, check_tensors

MOST = 100.0  # of exponents


def alignment(audio: Tensor, text: Tensor, *, alpha: float = 2.0) -> Tensor:
    """Mean ‖a − t‖^α over positive pairs; `(N, d)`, `(N, d)` L2-normalised → 0-d. 0 is perfect.

    >>> alignment(torch.eye(2), torch.eye(2).flip(0))
    tensor(2.0000)

    Raises:
        ValueError: shapes that differ or hold no pair, values that are not finite, or alpha beyond (0, 100].
        TypeError: what is no floating-point tensor.
    """
    check_pairs(audio, text)
    check_number("alpha", alpha, above=0, most=MOST)
    return (audio - text).norm(dim=1).pow(alpha).mean()


def uniformity(embeddings: Tensor, *, t: float = 2.0) -> Tensor:
    """log of the mean of exp(−t‖x − y‖²) over distinct pairs; `(N, d)` L2-normalised, N ≥ 2 → 0-d.

    Lower is more uniform; 0 means that all points coincide.

    >>> uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    tensor(-8.)

    Raises:
        ValueError: fewer than two embeddings, values that are not finite, or t beyond (0, 100].
        TypeError: what is no float32 or float64 tensor.
    """
    check_tensors(embeddings=embeddings)
    check_number("t", t, above=0, most=MOST)
    if embeddings.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"embeddings must be float32 or float64, got {embeddings.dtype}")
    if embeddings.ndim != 2 or len(embeddings) < 2:
        raise ValueError(f"uniformity needs at least two embeddings, as (N, d), got {tuple(embeddings.shape)}")
    squared = torch.nn.functional.pdist(embeddings).square()
    # log-mean-exp keeps far points from underflowing to log 0.
    return torch.logsumexp(-t * squared, dim=0) - math.log(len(squared))


def check_pairs(audio: Tensor, text: Tensor) -> None:
    """Require `(N, d)` and `(N, d)` with N ≥ 1."""
    check_tensors(audio=audio, text=text)
    check_alike(audio=audio, text=text)
    if audio.ndim != 2 or len(audio) == 0:
        raise ValueError(f"audio and text must be (N, d) with N ≥ 1, got {tuple(audio.shape)}")

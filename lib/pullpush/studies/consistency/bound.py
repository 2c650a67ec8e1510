"""The mathematics of ATRI's bound on the weights: probabilities of pairs, their weights, slopes, both sides' terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Reading = Literal["data", "printed"]
READINGS = ("data", "printed")
CURVATURE_POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way between the weights of both runs


def log_probability(audio: Tensor, texts: Tensor, tau: float = 0.07, *, reading: Reading = "data") -> Tensor:
    """log p(a_i, t_ik) of every matching pair, in one of two readings.

    "printed" is Eq. 1: one softmax over the N·K matching pairs. No mismatched pair is in it, and weighted with p itself
    (Eq. 3, Eq. 17) its gradient is Σ p ∇log p = ∇Σ p = 0: the run on all languages would never move. "data" is what the
    losses do: the mean of the two log-softmaxes of Eq. 10 and 11, so that its mean over all pairs is −`losses.kcl`.

    Args:
        audio: `(N, d)` L2-normalised.
        texts: `(N, K, d)` L2-normalised.
        tau: temperature.
        reading: "data" or "printed".

    Returns:
        `(N, K)`.

    Raises:
        ValueError: an unknown reading.

    Example:
        >>> audio = torch.eye(2)
        >>> log_probability(audio, audio[:, None], 1.0, reading="printed").exp().sum().item()
        1.0
    """
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {READINGS}, got {reading!r}")
    logits = torch.einsum("id,jkd->ikj", audio, texts) / tau  # (N, K, N)
    positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K)
    if reading == "printed":
        return positive - positive.logsumexp(dim=(0, 1))  # Eq. 1
    return positive - (logits.logsumexp(dim=2) + logits.logsumexp(dim=0).T) / 2  # Eq. 10 and 11


def pair_distribution(log_p: Tensor, taken: Tensor, *, reading: Reading = "data") -> Tensor:
    """How much each pair weighs in a step's gradient: p for all pairs taken, else p'_e.

    "data": every pair taken alike. "printed": Eq. 1 and 4, in proportion to the model's own probability.

    Args:
        log_p: `(N, K)`, see `log_probability`. taken: `(N, K)` boolean.

    Returns:
        `(N, K)`, sums to 1, zero where not taken.

    Example:
        >>> pair_distribution(torch.zeros(1, 4), torch.tensor([[True, True, False, False]])).tolist()
        [[0.5, 0.5, 0.0, 0.0]]
    """
    weight = taken.to(log_p.dtype) if reading == "data" else (log_p - log_p[taken].max()).exp() * taken
    return weight / weight.sum()


def weight_error_bound(
    previous: float, g_max: Tensor, *, growth: float, distribution_error: float, rate: float, first: int = 0
) -> float:
    """The right side of ATRI's bound over one epoch: aᵀ·previous + η D Σ_j aʲ g_max(w_{eT−1−j}).

    Args:
        previous: ‖w − w'‖ before the epoch.
        g_max: `(T,)` in the order of the steps: Eq. 7 at the weights before each.
        growth: a. distribution_error: D = Σ|p − p'|. rate: η.
        first: least j of the sum: 0 in Eq. 21, which the proof gives; 1 in Eq. 6 of the main text.

    Example:
        >>> weight_error_bound(1.0, torch.tensor([3.0]), growth=2.0, distribution_error=0.5, rate=0.1)
        2.15
    """
    powers = torch.tensor(growth, dtype=torch.float64) ** torch.arange(len(g_max) + 1)  # inf, not OverflowError
    total = (powers[:-1] * g_max.double().cpu().flip(0))[first:].sum()
    # Nothing grown is nothing, even by an infinite power.
    inherited = float(powers[-1] * previous) if previous else 0.0
    return inherited + (float(rate * distribution_error * total) if distribution_error else 0.0)


def lipschitz_constants(
    log_p: Callable[[Tensor], Tensor], full: Tensor, sampled: Tensor, change: Tensor, kind: float | str
) -> Tensor:
    """λ of every pair, `(B·K,)`: how fast its gradient changes between the weights of two runs.

    Args:
        log_p: weights `(P,)` → `(B·K,)`.
        full, sampled: `(P,)` weights of both runs.
        change: what each pair's gradient changes by from one to the other, `(B·K, P)`.
        kind: "secant", the change over the distance; "segment", the greatest curvature (spectral norm of the Hessian)
            at five points between them; or a number, the same for all pairs.

    Raises:
        ValueError: an unknown kind.
    """
    if not isinstance(kind, str):
        return change.new_full(change.shape[:1], float(kind))
    if kind == "secant":
        apart = (sampled - full).norm()
        return change.norm(dim=1) / apart if apart > 0 else change.new_zeros(len(change))
    if kind != "segment":
        raise ValueError(f"lipschitz must be 'secant', 'segment' or a number, got {kind!r}")
    curvature = torch.func.hessian(log_p)  # (B·K, P, P)
    points = [torch.lerp(full, sampled, part) for part in CURVATURE_POINTS]
    return torch.stack([torch.linalg.eigvalsh(curvature(point)).abs().amax(dim=1) for point in points]).amax(dim=0)

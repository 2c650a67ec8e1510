"""ATRI's bound on the distance between the weights of a run on all languages and of one on some (Eq. 1–8, 17–28)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from pullpush.studies.consistency.schemes import Step

Embed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Weights `(P,)` and numbers of clips `(B,)` → audio `(B, d)`, texts `(B, K, d)`; torch functions only."""
Reading = Literal["data", "printed"]


# ---------------------------------------------------------------- the terms


def log_probability(audio: Tensor, texts: Tensor, tau: float = 0.07, *, reading: Reading = "data") -> Tensor:
    """log p(a_i, t_ik) of every matching pair, in one of two readings.

    "printed" is Eq. 1: one softmax over the N·K matching pairs. No mismatched pair is in it, and weighted with p itself
    (Eq. 3, Eq. 17) its gradient is Σ p ∇log p = ∇Σ p = 0: the run on all languages would never move. "data" is what the
    losses do: the mean of the two log-softmaxes of Eq. 10 and 11, so that its mean over all pairs is −`losses.kcl`.

    Args:
        audio: `(N, d)` L2-normalised. texts: `(N, K, d)` L2-normalised. tau: temperature.

    Returns:
        `(N, K)`.

    Raises:
        ValueError: an unknown reading.

    Example:
        >>> audio = torch.eye(2)
        >>> log_probability(audio, audio[:, None], 1.0, reading="printed").exp().sum().item()
        1.0
    """
    if reading not in ("data", "printed"):
        raise ValueError(f"reading must be 'data' or 'printed', got {reading!r}")
    logits = torch.einsum("id,jkd->ikj", audio, texts) / tau  # (N, K, N)
    positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K)
    if reading == "printed":
        return positive - positive.logsumexp(dim=(0, 1))  # Eq. 1
    return positive - (logits.logsumexp(dim=2) + logits.logsumexp(dim=0).T) / 2  # Eq. 10 and 11


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


# ---------------------------------------------------------------- one step of both runs


class Comparison(NamedTuple):
    """One step of both runs: their gradients `(P,)`, Σ p'λ, Σ|p − p'| and Eq. 7."""

    gradient: Tensor
    sampled_gradient: Tensor
    slope: float
    distribution_error: float
    g_max: float


def compare(
    embed: Embed,
    full: Tensor,
    sampled: Tensor,
    step: Step,
    *,
    tau: float = 0.07,
    sampled_loss: bool = False,
    lipschitz: float | None = None,
    text_share: float = 0.0,
) -> Comparison:
    """What the bound needs of one step, at the weights of both runs before it. Memory is B·K·P numbers.

    Every pair that a run takes weighs the same: 1/BK in p, and 1 over the number of pairs taken in p'.

    Args:
        embed: the model; in float64, for the left side of the bound is a small difference.
        full, sampled: `(P,)` weights of the run on all languages, and of that on some.
        tau: temperature.
        sampled_loss: the proof gives both runs the same log p (Eq. 17), and so does False. True lets the sampled run
            climb a log p' whose denominators hold only what it took (Eq. 5), in mixed languages as ML-CLAP and CACL
            train; the bound has no term for the difference. Every clip of a step must then take equally many languages.
        lipschitz: λ. The proof needs no more of it than ‖∇log p(w') − ∇log p(w)‖ ≤ λ‖w' − w‖ for the two weights of a
            step: None is the least such λ of each pair, the secant; any larger number gives a looser bound.
        text_share: CACL contrasts the main text with the other one, too, a third of its loss (Eq. 12), where all
            languages have no such pairs. So much of p' goes to them, and p gives them none.

    Raises:
        ValueError: a share of texts where the step does not take the main language and one other of each clip.
    """
    if text_share and not (step.taken[:, 0].all() and (step.taken.sum(dim=1) == 2).all()):
        raise ValueError("pairs of texts need the main language and one other of each clip: sampling 'pair'")

    def of_texts(texts: Tensor) -> Tensor:
        """log p of each clip's main text with its other one, `(B,)`; nothing where they have no weight."""
        if not text_share:
            return texts.new_zeros(0)
        other = texts[:, 1:][step.taken[:, 1:]]
        return log_probability(texts[:, 0], other[:, None], tau).flatten()

    def log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        return torch.cat([log_probability(audio, texts, tau).flatten(), of_texts(texts)])

    def sampled_log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        taken = texts[step.taken].unflatten(0, (len(audio), -1))  # (B, languages taken of each, d)
        return torch.cat([log_probability(audio, taken, tau).flatten(), of_texts(texts)])

    taken = step.taken.to(full.dtype).flatten()
    between = taken.new_ones(len(step.items) if text_share else 0) / len(step.items)
    p = torch.cat([torch.ones_like(taken) / len(taken), 0 * between])
    q = torch.cat([(1 - text_share) * taken / taken.sum(), text_share * between])
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (pairs, P)
    climb = q[q > 0] @ torch.func.jacrev(sampled_log_p)(sampled) if sampled_loss else q @ moved
    apart = (sampled - full).norm()
    secants = (moved - gradients).norm(dim=1) / apart if apart > 0 else torch.zeros_like(q)
    return Comparison(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(q @ secants) if lipschitz is None else lipschitz,  # p' sums to one
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )


# ---------------------------------------------------------------- both runs


class WeightError(NamedTuple):
    """Both sides of ATRI's weight error bound after an epoch of T steps; w takes all languages, w' those sampled.

    epoch: from 1.
    left: ‖w − w'‖.
    right: Eq. 21 of the appendix, j from 0, from the measured error at the epoch's start.
    main_text: Eq. 6 as printed, j from 1: it leaves out the last step's own error and need not hold.
    stepwise: the same bound with each step's own growth and distribution error (inequality 3 of Eq. 18, unrolled).
    expanded: Eq. 21 from its own value at the epoch's start instead of the measured one (§3.2, second result).
    growth: a of Eq. 8; distribution_error: Σ|p − p'|; both the epoch's largest, for Eq. 21 has one for all steps.
    g_max: the epoch's largest Eq. 7.
    """

    epoch: int
    left: float
    right: float
    main_text: float
    stepwise: float
    expanded: float
    growth: float
    distribution_error: float
    g_max: float


def weight_errors(
    embed: Embed, start: Tensor, plan: Sequence[Sequence[Step]], *, rate: float, **choices: Any
) -> list[WeightError]:
    """Train twice by SGD from the same weights, on all languages and on those of the plan: a row an epoch.

    Each step climbs: w ← w + η Σ p ∇log p. (Eq. 17 prints a minus, which would lower the probability that Eq. 3 says to
    raise; the bound is the same.)

    Args:
        embed, choices: see `compare`.
        start: `(P,)` weights.
        plan: epochs of steps, see `schemes.language_plan`.
        rate: η, the learning rate.
    """
    full, sampled, expanded, rows = start.detach(), start.detach(), 0.0, []
    for number, epoch in enumerate(plan, start=1):
        before = stepwise = float((full - sampled).norm())
        growths, errors, largest = [], [], []
        for step in epoch:
            seen = compare(embed, full, sampled, step, **choices)
            growths.append(1 + rate * seen.slope)  # Eq. 8
            errors.append(seen.distribution_error)
            largest.append(seen.g_max)
            stepwise = growths[-1] * stepwise + rate * errors[-1] * largest[-1]  # Eq. 18, inequality 3
            full, sampled = full + rate * seen.gradient, sampled + rate * seen.sampled_gradient
        constants = {"growth": max(growths), "distribution_error": max(errors)}
        g_max = torch.tensor(largest, dtype=torch.float64)
        expanded = weight_error_bound(expanded, g_max, rate=rate, **constants)
        rows.append(
            WeightError(
                epoch=number,
                left=float((full - sampled).norm()),
                right=weight_error_bound(before, g_max, rate=rate, **constants),
                main_text=weight_error_bound(before, g_max, rate=rate, **constants, first=1),
                stepwise=stepwise,
                expanded=expanded,
                **constants,
                g_max=max(largest),
            )
        )
    return rows


class MomentumError(NamedTuple):
    """Both sides of the bound on Adam's first momentum after a step (ATRI Eq. 28).

    left: ‖m − m'‖. right: β₁‖m − m'‖ of the step before + (1−β₁)(Σ p'λ ‖w − w'‖ + g_max Σ|p − p'|).
    printed: Eq. 28 as it ends, where the first term has become ‖w − w'‖, which nothing before it gives: need not hold.
    weights: ‖w − w'‖ after the step.
    """

    step: int
    left: float
    right: float
    printed: float
    weights: float


def momentum_errors(
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    **choices: Any,
) -> list[MomentumError]:
    """Train twice by Adam and compare the momenta: a row a step (ATRI Appendix C.1, Eq. 22–28).

    Args: as for `weight_errors`; betas: β₁, β₂; eps: added to √v̂, which Eq. 27 leaves bare.
    """
    full, sampled = (_Adam(start.detach(), rate, betas, eps) for _ in range(2))
    rows: list[MomentumError] = []
    for number, step in enumerate((step for epoch in plan for step in epoch), start=1):
        seen = compare(embed, full.weights, sampled.weights, step, **choices)
        apart, before = float((full.weights - sampled.weights).norm()), float((full.m - sampled.m).norm())
        source = (1 - betas[0]) * seen.g_max * seen.distribution_error
        drift = (1 - betas[0]) * seen.slope * apart
        full.climb(seen.gradient)
        sampled.climb(seen.sampled_gradient)
        left, weights = float((full.m - sampled.m).norm()), float((full.weights - sampled.weights).norm())
        rows.append(MomentumError(number, left, betas[0] * before + drift + source, apart + drift + source, weights))
    return rows


class _Adam:
    """Eq. 22–27, climbing."""

    def __init__(self, weights: Tensor, rate: float, betas: tuple[float, float], eps: float) -> None:
        self.weights, self.rate, self.betas, self.eps = weights, rate, betas, eps
        self.m, self.v, self.steps = torch.zeros_like(weights), torch.zeros_like(weights), 0

    def climb(self, gradient: Tensor) -> None:
        """One step along the gradient `(P,)`."""
        (beta_1, beta_2), self.steps = self.betas, self.steps + 1
        self.m = beta_1 * self.m + (1 - beta_1) * gradient  # Eq. 23
        self.v = beta_2 * self.v + (1 - beta_2) * gradient.square()  # Eq. 24
        m, v = self.m / (1 - beta_1**self.steps), self.v / (1 - beta_2**self.steps)  # Eq. 25–26
        self.weights = self.weights + self.rate * m / (v.sqrt() + self.eps)  # Eq. 27

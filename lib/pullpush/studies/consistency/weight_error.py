"""The bound on the weights of a model that sees some languages at a time (ATRI §3.2 and Appendix C).

`weight_errors` trains a small model twice, on all languages and on some, and gives both sides of the bound on how far
the two come apart; `momentum_errors` does so for Adam's first momentum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Reading = Literal["data", "printed"]
READINGS = ("data", "printed")
SAMPLING = ("random", "pair", "all")

Embed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Weights `(P,)` and numbers of clips `(B,)` → audio `(B, d)`, texts `(B, K, d)`; torch functions only."""


class Step(NamedTuple):
    """One optimiser step: numbers of its clips `(B,)`, and the languages taken of each, `(B, K)` boolean."""

    items: Tensor
    taken: Tensor


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


def language_plan(
    clips: int, languages: int, *, sampling: str, epochs: int, batch_size: int, seed: int = 0
) -> list[list[Step]]:
    """What each step of each epoch takes, as `PairDataset` samples: language 0 is the main one (English).

    Args:
        clips: N. languages: K.
        sampling: "random", one language a clip (ML-CLAP); "pair", the main and one other (CACL); "all" (KCL).
        epochs, batch_size: the last batch may be short.
        seed: of the order, the same for every sampling, and of the languages.

    Raises:
        ValueError: an unknown sampling, or "pair" with one language.
    """
    if sampling not in SAMPLING:
        raise ValueError(f"sampling must be one of {SAMPLING}, got {sampling!r}")
    if sampling == "pair" and languages < 2:
        raise ValueError("sampling 'pair' needs at least two languages")
    order, draw = (torch.Generator().manual_seed(2 * seed + offset) for offset in (0, 1))
    plan = []
    for _ in range(epochs):
        taken = torch.ones(clips, languages, dtype=torch.bool)
        if sampling != "all":
            first = int(sampling == "pair")
            chosen = torch.randint(first, languages, (clips,), generator=draw)
            taken = F.one_hot(chosen, languages).bool()
            taken[:, :first] = True
        batches = torch.randperm(clips, generator=order).split(batch_size)
        plan.append([Step(items, taken[items]) for items in batches])
    return plan


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
    """
    powers = torch.tensor(growth, dtype=torch.float64) ** torch.arange(len(g_max) + 1)  # inf, not OverflowError
    total = (powers[:-1] * g_max.double().cpu().flip(0))[first:].sum()
    # Nothing grown is nothing, even by an infinite power.
    inherited = float(powers[-1] * previous) if previous else 0.0
    return inherited + (float(rate * distribution_error * total) if distribution_error else 0.0)


def weight_errors(
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    tau: float = 0.07,
    reading: Reading = "data",
    own: bool = False,
    lipschitz: float | str = "secant",
) -> list[WeightError]:
    """Train twice by SGD from one start, on all languages and on those of the plan, and compare (ATRI Eq. 6–8, 17–21).

    Each step climbs: w ← w + η Σ p ∇log p. (Eq. 17 prints a minus, which would lower the probability that Eq. 3 says to
    raise; the bound is the same.) The gradient of every pair is computed: memory is B·K·P numbers.

    Where the paper leaves a choice:

    * `reading`: what p and log p are, see `log_probability` and `pair_distribution`.
    * `own`: the proof gives both runs one log p (Eq. 17), and so does False. True lets the sampled run climb its own
      log p', whose denominators hold only what it took (Eq. 5), mixed languages as ML-CLAP and CACL train; the bound
      has no term for the difference. Every clip of a step must then take equally many languages.
    * `lipschitz`: the proof needs no more of λ than ‖∇log p(w') − ∇log p(w)‖ ≤ λ‖w' − w‖ for the two weights of a step.
      "secant" is the least such λ, so that every other choice gives a looser bound; "segment" is the greatest curvature
      (spectral norm of the Hessian) at five points from w to w', nearer to a Lipschitz constant; or give a number.

    Args:
        embed: the model, see `Embed`. Use float64: the left side is a small difference.
        start: `(P,)` weights.
        plan: epochs of steps, see `language_plan`.
        rate: η, the learning rate.
        tau: temperature.

    Returns:
        One row an epoch; `pandas.DataFrame(rows)` is a table.

    Raises:
        ValueError: an unknown reading or lipschitz.
    """
    full, sampled, expanded, rows = start.detach(), start.detach(), 0.0, []
    for number, epoch in enumerate(plan, start=1):
        before = stepwise = float((full - sampled).norm())
        growths, errors, largest = [], [], []
        for step in epoch:
            seen = _compare(embed, full, sampled, step, tau=tau, reading=reading, own=own, lipschitz=lipschitz)
            growths.append(1 + rate * seen.slope)  # Eq. 8
            errors.append(seen.distribution_error)
            largest.append(seen.g_max)
            stepwise = growths[-1] * stepwise + rate * errors[-1] * largest[-1]  # Eq. 18, inequality 3
            full, sampled = full + rate * seen.gradient, sampled + rate * seen.sampled_gradient
        constants = {"growth": max(growths), "distribution_error": max(errors), "rate": rate}
        g_max = torch.tensor(largest, dtype=torch.float64)
        expanded = weight_error_bound(expanded, g_max, **constants)
        rows.append(
            WeightError(
                epoch=number,
                left=float((full - sampled).norm()),
                right=weight_error_bound(before, g_max, **constants),
                main_text=weight_error_bound(before, g_max, **constants, first=1),
                stepwise=stepwise,
                expanded=expanded,
                growth=constants["growth"],
                distribution_error=constants["distribution_error"],
                g_max=max(largest),
            )
        )
    return rows


def momentum_errors(
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    tau: float = 0.07,
    reading: Reading = "data",
    own: bool = False,
    lipschitz: float | str = "secant",
) -> list[MomentumError]:
    """Train twice by Adam and compare the momenta (ATRI Appendix C.1, Eq. 22–28).

    Args: as for `weight_errors`; betas: β₁, β₂; eps: added to √v̂, which Eq. 27 leaves bare.

    Returns:
        One row a step.
    """
    runs = [_Adam(start.detach(), rate, betas, eps) for _ in range(2)]
    rows: list[MomentumError] = []
    for number, step in enumerate((step for epoch in plan for step in epoch), start=1):
        full, sampled = runs
        seen = _compare(
            embed, full.weights, sampled.weights, step, tau=tau, reading=reading, own=own, lipschitz=lipschitz
        )
        apart, before = float((full.weights - sampled.weights).norm()), float((full.m - sampled.m).norm())
        source = (1 - betas[0]) * seen.g_max * seen.distribution_error
        drift = (1 - betas[0]) * seen.slope * apart
        full.climb(seen.gradient)
        sampled.climb(seen.sampled_gradient)
        rows.append(
            MomentumError(
                step=number,
                left=float((full.m - sampled.m).norm()),
                right=betas[0] * before + drift + source,
                printed=apart + drift + source,
                weights=float((full.weights - sampled.weights).norm()),
            )
        )
    return rows


class _Seen(NamedTuple):
    """One step of both runs: their gradients `(P,)`, Σ p'λ, Σ|p − p'| and Eq. 7."""

    gradient: Tensor
    sampled_gradient: Tensor
    slope: float
    distribution_error: float
    g_max: float


def _compare(
    embed: Embed,
    full: Tensor,
    sampled: Tensor,
    step: Step,
    *,
    tau: float,
    reading: Reading,
    own: bool,
    lipschitz: float | str,
) -> _Seen:
    """What the bound needs of one step, at the weights of both runs before it."""

    def log_p(weights: Tensor) -> Tensor:
        return log_probability(*embed(weights, step.items), tau, reading=reading).flatten()

    def own_log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        texts = texts[slots].unflatten(0, (len(audio), -1))  # (B, languages taken of each, d)
        return log_probability(audio, texts, tau, reading=reading).flatten()

    slots = step.taken.nonzero(as_tuple=True)
    everything = torch.ones_like(step.taken)
    with torch.no_grad():
        p = pair_distribution(log_p(full).view_as(everything), everything, reading=reading).flatten()
        q = pair_distribution(log_p(sampled).view_as(everything), step.taken, reading=reading).flatten()
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (B·K, P)
    climb = q[step.taken.flatten()] @ torch.func.jacrev(own_log_p)(sampled) if own else q @ moved
    slope = q @ _lipschitz(log_p, full, sampled, moved - gradients, lipschitz)
    return _Seen(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(slope),
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )


def _lipschitz(
    log_p: Callable[[Tensor], Tensor], full: Tensor, sampled: Tensor, change: Tensor, kind: float | str
) -> Tensor:
    """λ of every pair, `(B·K,)`; `change` is what its gradient changed by, `(B·K, P)`."""
    if not isinstance(kind, str):
        return change.new_full(change.shape[:1], float(kind))
    if kind == "secant":
        apart = (sampled - full).norm()
        return change.norm(dim=1) / apart if apart > 0 else change.new_zeros(len(change))
    if kind != "segment":
        raise ValueError(f"lipschitz must be 'secant', 'segment' or a number, got {kind!r}")
    curvature = torch.func.hessian(log_p)  # (B·K, P, P)
    points = [torch.lerp(full, sampled, at) for at in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return torch.stack([torch.linalg.eigvalsh(curvature(point)).abs().amax(dim=1) for point in points]).amax(dim=0)


class _Adam:
    """Eq. 22–27, climbing."""

    def __init__(self, weights: Tensor, rate: float, betas: tuple[float, float], eps: float) -> None:
        self.weights, self.rate, self.betas, self.eps = weights, rate, betas, eps
        self.m, self.v, self.steps = torch.zeros_like(weights), torch.zeros_like(weights), 0

    def climb(self, gradient: Tensor) -> None:
        """One step along the gradient `(P,)`."""
        (one, two), self.steps = self.betas, self.steps + 1
        self.m = one * self.m + (1 - one) * gradient  # Eq. 23
        self.v = two * self.v + (1 - two) * gradient.square()  # Eq. 24
        m, v = self.m / (1 - one**self.steps), self.v / (1 - two**self.steps)  # Eq. 25–26
        self.weights = self.weights + self.rate * m / (v.sqrt() + self.eps)  # Eq. 27

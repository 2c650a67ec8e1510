"""The distance between the first momenta of two runs by Adam, beside ATRI's bound on it (Appendix C.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.studies.consistency.bound import Reading
from pullpush.studies.consistency.two_runs import Embed, Step, compare


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
    tau: float = 0.07,
    reading: Reading = "data",
    sampled_loss: bool = False,
    lipschitz: float | str = "secant",
    text_share: float = 0.0,
) -> list[MomentumError]:
    """Train twice by Adam and compare the momenta (ATRI Appendix C.1, Eq. 22–28).

    Args: as for `weight_error.weight_errors`; betas: β₁, β₂; eps: added to √v̂, which Eq. 27 leaves bare.

    Returns:
        One row a step.
    """
    full, sampled = (_Adam(start.detach(), rate, betas, eps) for _ in range(2))
    choices = {"tau": tau, "reading": reading, "sampled_loss": sampled_loss, "lipschitz": lipschitz}
    choices["text_share"] = text_share
    rows: list[MomentumError] = []
    for number, step in enumerate((step for epoch in plan for step in epoch), start=1):
        seen = compare(embed, full.weights, sampled.weights, step, **choices)
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

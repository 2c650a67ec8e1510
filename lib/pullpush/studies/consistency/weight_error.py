"""The distance between the weights of two runs by SGD, beside ATRI's bound on it (Eq. 6–8, 17–21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.studies.consistency.bound import Reading, weight_error_bound
from pullpush.studies.consistency.two_runs import Embed, Step, compare


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
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    tau: float = 0.07,
    reading: Reading = "data",
    sampled_loss: bool = False,
    lipschitz: float | str = "secant",
    text_share: float = 0.0,
) -> list[WeightError]:
    """Train twice by SGD from the same weights, on all languages and on those of the plan, and compare.

    Each step climbs: w ← w + η Σ p ∇log p. (Eq. 17 prints a minus, which would lower the probability that Eq. 3 says to
    raise; the bound is the same.) The gradient of every pair is computed: memory is B·K·P numbers.

    Where the paper leaves a choice:

    * `reading`: what p and log p are, see `bound.log_probability` and `bound.pair_distribution`.
    * `sampled_loss`: the proof gives both runs the same log p (Eq. 17), and so does False. True lets the sampled run
      climb a log p' whose denominators hold only what it took (Eq. 5), mixed languages as ML-CLAP and CACL train; the
      bound has no term for the difference. Every clip of a step must then take equally many languages.
    * `lipschitz`: the proof needs no more of λ than ‖∇log p(w') − ∇log p(w)‖ ≤ λ‖w' − w‖ for the two weights of a step.
      "secant" is the least such λ, so that every other choice gives a looser bound; "segment" and numbers:
      see `bound.lipschitz_constants`.
    * `text_share`: CACL contrasts the main text with the other one, too, a third of its loss (Eq. 12), where all
      languages have no such pairs. So much of p' goes to them, and p gives them none.

    Args:
        embed: the model, see `Embed`. Use float64: the left side is a small difference.
        start: `(P,)` weights.
        plan: epochs of steps, see `two_runs.language_plan`.
        rate: η, the learning rate.
        tau: temperature.

    Returns:
        One row an epoch; `pandas.DataFrame(rows)` is a table.

    Raises:
        ValueError: an unknown reading or lipschitz; a share of texts that the plan does not take by pairs.
    """
    full, sampled, expanded, rows = start.detach(), start.detach(), 0.0, []
    for number, epoch in enumerate(plan, start=1):
        before = stepwise = float((full - sampled).norm())
        growths, errors, largest = [], [], []
        for step in epoch:
            choices = {"tau": tau, "reading": reading, "sampled_loss": sampled_loss, "lipschitz": lipschitz}
            choices["text_share"] = text_share
            seen = compare(embed, full, sampled, step, **choices)
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

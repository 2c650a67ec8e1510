"""Two runs from the same weights, one on all languages and one on those sampled, compared step by step (ATRI §3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.studies.consistency.bound import Reading, lipschitz_constants, log_probability, pair_distribution
from pullpush.studies.consistency.schemes import SAMPLINGS, take

Embed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Weights `(P,)` and numbers of clips `(B,)` → audio `(B, d)`, texts `(B, K, d)`; torch functions only."""


class Step(NamedTuple):
    """One optimiser step: numbers of its clips `(B,)`, and the languages taken of each, `(B, K)` boolean."""

    items: Tensor
    taken: Tensor


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

    Example:
        >>> ((step,),) = language_plan(4, 3, sampling="pair", epochs=1, batch_size=4)
        >>> step.taken.sum(dim=1).tolist()
        [2, 2, 2, 2]
    """
    if sampling not in SAMPLINGS:
        raise ValueError(f"sampling must be one of {tuple(SAMPLINGS)}, got {sampling!r}")
    if sampling == "pair" and languages < 2:
        raise ValueError("sampling 'pair' needs at least two languages")
    order, draw = (torch.Generator().manual_seed(2 * seed + offset) for offset in (0, 1))
    plan = []
    for _ in range(epochs):
        taken = torch.ones(clips, languages, dtype=torch.bool)
        if sampling != "all":
            taken = take(clips, languages, sampling, draw)
        batches = torch.randperm(clips, generator=order).split(batch_size)
        plan.append([Step(items, taken[items]) for items in batches])
    return plan


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
    tau: float,
    reading: Reading,
    sampled_loss: bool,
    lipschitz: float | str,
) -> Comparison:
    """What the bound needs of one step, at the weights of both runs before it.

    Args:
        embed: the model. full, sampled: `(P,)` weights of the run on all languages, and of that on some.
        step: see `Step`. tau: temperature. reading: see `bound.log_probability`.
        sampled_loss, lipschitz: see `weight_error.weight_errors`.
    """

    def log_p(weights: Tensor) -> Tensor:
        return log_probability(*embed(weights, step.items), tau, reading=reading).flatten()

    def sampled_log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        texts = texts[slots].unflatten(0, (len(audio), -1))  # (B, languages taken of each, d)
        return log_probability(audio, texts, tau, reading=reading).flatten()

    slots = step.taken.nonzero(as_tuple=True)
    everything = torch.ones_like(step.taken)
    with torch.no_grad():
        p = pair_distribution(log_p(full).view_as(everything), everything, reading=reading).flatten()
        q = pair_distribution(log_p(sampled).view_as(everything), step.taken, reading=reading).flatten()
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (B·K, P)
    climb = q[step.taken.flatten()] @ torch.func.jacrev(sampled_log_p)(sampled) if sampled_loss else q @ moved
    slope = q @ lipschitz_constants(log_p, full, sampled, moved - gradients, lipschitz)
    return Comparison(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(slope),
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )

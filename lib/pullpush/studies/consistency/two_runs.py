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
    text_share: float = 0.0,
) -> Comparison:
    """What the bound needs of one step, at the weights of both runs before it.

    Args:
        embed: the model. full, sampled: `(P,)` weights of the run on all languages, and of that on some.
        step: see `Step`. tau: temperature. reading: see `bound.log_probability`.
        sampled_loss, lipschitz, text_share: see `weight_error.weight_errors`.

    Raises:
        ValueError: a share of pairs of texts where a clip does not take the main language and one other.
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
        return torch.cat([log_probability(audio, texts, tau, reading=reading).flatten(), of_texts(texts)])

    def sampled_log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        taken = texts[slots].unflatten(0, (len(audio), -1))  # (B, languages taken of each, d)
        return torch.cat([log_probability(audio, taken, tau, reading=reading).flatten(), of_texts(texts)])

    slots = step.taken.nonzero(as_tuple=True)
    everything, count = torch.ones_like(step.taken), step.taken.numel()
    with torch.no_grad():
        all_p, taken_p = (log_p(weights)[:count].view_as(everything) for weights in (full, sampled))
        between = all_p.new_ones(len(step.items) if text_share else 0) / len(step.items)
        p = torch.cat([pair_distribution(all_p, everything, reading=reading).flatten(), 0 * between])
        of_clips = pair_distribution(taken_p, step.taken, reading=reading).flatten()
        q = torch.cat([(1 - text_share) * of_clips, text_share * between])
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (pairs, P)
    chosen = torch.cat([step.taken.flatten(), between > 0])
    climb = q[chosen] @ torch.func.jacrev(sampled_log_p)(sampled) if sampled_loss else q @ moved
    slope = q @ lipschitz_constants(log_p, full, sampled, moved - gradients, lipschitz)
    return Comparison(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(slope),
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )

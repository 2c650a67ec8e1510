"""How hard a loss pulls and pushes each pair of a batch: the gradient of the similarities, in units of 1/τ.

Any loss that sees embeddings through their similarities alone moves text i along Σⱼ wᵢⱼ aⱼ/τ. A weight below zero is a
pull and one above zero a push; what losses differ in is how the weights of one text hang together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.losses import info_nce, siglip
from pullpush.metrics.inference import Array
from pullpush.training.loop import Result
from pullpush.training.objective import Objective
from pullpush.training.runs import drawn

Loss = Callable[[Tensor, Tensor], Tensor]  # of (audio, text), the mean over a batch


class Space(NamedTuple):
    """The pairs of one model, `(N, d)` each, and the loss and temperature that they were trained with, as learnt."""

    audio: Tensor
    text: Tensor
    loss: Loss
    tau: float


def pair_weights(loss: Loss, similarity: Tensor, tau: float) -> Tensor:
    """The weight of every pair in the gradient: τ N ∂L/∂sᵢⱼ, `(N, N)`, texts in rows.

    Args:
        loss: a function of (audio, text) through their similarities alone, such as `siglip`.
        similarity: `(N, N)`.
        tau: the temperature of the loss.

    Example:
        >>> from pullpush.losses import siglip
        >>> pair_weights(lambda audio, text: siglip(audio, text, tau=1.0, bias=0.0), torch.zeros(2, 2), tau=1.0)
        tensor([[-0.5000,  0.5000],
                [ 0.5000, -0.5000]])
    """
    leaf = similarity.detach().clone().requires_grad_()
    basis = torch.eye(len(leaf), dtype=leaf.dtype)  # texts whose products with these clips are the similarities
    (gradient,) = torch.autograd.grad(loss(basis, leaf), leaf)
    return tau * len(leaf) * gradient


def pull_and_push(weights: Tensor) -> tuple[Tensor, Tensor]:
    """The pull of each text's own clip and the push of all others together, `(N,)` each.

    >>> pull_and_push(torch.tensor([[-0.5, 0.2], [0.1, -0.4]]))
    (tensor([0.5000, 0.4000]), tensor([0.2000, 0.1000]))
    """
    pull = -weights.diagonal()
    return pull, weights.sum(dim=1) + pull


def over_batch_sizes(
    spaces: Mapping[str, Space], sizes: Sequence[int], *, draws: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Pull and push a text in batches of random pairs, with everything that was learnt held as it is.

    Args:
        spaces: system → its pairs, of the same clips for all.
        sizes: of batches; those beyond the number of pairs are left out.
        draws: batches of each size.

    Returns:
        A row a system, size and draw: system, clips, draw, pull and push, means over texts.
    """
    rows, count = [], len(next(iter(spaces.values())).audio)
    for size in (size for size in sizes if size <= count):
        generator = torch.Generator().manual_seed(seed)
        for draw in range(draws):
            chosen = torch.randperm(count, generator=generator)[:size]
            for system, space in spaces.items():
                similarity = space.text[chosen] @ space.audio[chosen].T
                pull, push = pull_and_push(pair_weights(space.loss, similarity, space.tau))
                rows.append((system, size, draw, float(pull.mean()), float(push.mean())))
    return pd.DataFrame(rows, columns=["system", "clips", "draw", "pull", "push"])


def by_domain(weights: Mapping[str, Tensor], domains: Sequence[str]) -> pd.DataFrame:
    """Pull, and push by the same domain and by others, a text of each domain.

    Args:
        weights: system → `(N, N)`, see `pair_weights`.
        domains: of the N pairs.

    Returns:
        A row a system and domain: system, domain, pairs, pull, same, other; means over the domain's texts.

    Example:
        >>> weights = torch.tensor([[-0.5, 0.2, 0.1], [0.2, -0.4, 0.1], [0.0, 0.0, -0.3]])
        >>> by_domain({"SigLIP": weights}, ["sound", "sound", "music"]).round(2).to_dict("records")[0]
        {'system': 'SigLIP', 'domain': 'sound', 'pairs': 2, 'pull': 0.45, 'same': 0.2, 'other': 0.1}
    """
    names, rows = np.array(domains), []
    for system, values in weights.items():
        matrix = values.double().numpy()
        pull, push = -matrix.diagonal(), matrix - np.diag(matrix.diagonal())
        for name in dict.fromkeys(domains):
            own = names == name
            same, other = (push[np.ix_(own, columns)].sum(axis=1).mean() for columns in (own, ~own))
            rows.append((system, name, int(own.sum()), pull[own].mean(), same, other))
    return pd.DataFrame(rows, columns=["system", "domain", "pairs", "pull", "same", "other"])


def learnt(run: Result) -> dict[str, float]:
    """The numbers of its loss that a run had learnt where its model was taken: tau and, of a sigmoid, bias."""
    steps = run.steps.set_index("step")
    numbers = steps[[name for name in ("tau", "bias") if name in steps]]
    return {str(name): float(value) for name, value in numbers.loc[int(run.best["step"])].items()}


def loss_of(run: Result) -> Loss:
    """The loss of a run, of (audio, text), with what it had learnt: InfoNCE from texts to clips, or the sigmoid."""
    numbers, options = learnt(run), run.recipe.terms[0].settings
    if "bias" not in numbers:
        return partial(info_nce, tau=numbers["tau"], direction="t2a")
    return partial(siglip, **numbers, form=options["form"])


def gradient_left_out(run: Result, clips: Clips, processes: int, *, seed: int = 0) -> Array:
    """How far the gradient of losses within processes is from that of the gathered batch, `(1, batches)`.

    Each of the first batches that training would draw is dealt out to so many processes in equal parts, and their local
    losses are averaged.

    Args:
        run: the model and its loss, with what it has learnt.
        clips: that it was trained on.
        processes: a divisor of its batch size.
        seed: of the batches.

    Returns:
        The norm of the difference of both gradients of all trained weights, over that of the gathered one.
    """
    objective, loss = Objective(run.model, run.recipe), loss_of(run)
    weights = [weight for weight in run.model.parameters() if weight.requires_grad]
    found = []
    for batch in drawn(clips, run.recipe, seed=seed):
        audio, (text, *_) = run.model.encode_audio(batch.audio, batch.lengths), objective.embed_here(batch)
        parts = zip(audio.chunk(processes), text.chunk(processes), strict=True)
        local = torch.stack([loss(*part) for part in parts]).mean()
        whole, within = (
            torch.cat([part.flatten() for part in torch.autograd.grad(value, weights, retain_graph=True)])
            for value in (loss(audio, text), local)
        )
        found.append(float((whole - within).norm() / whole.norm()))
    return np.array(found)[None]

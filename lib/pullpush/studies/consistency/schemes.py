"""The schemes that a clip with texts in several languages is trained by, and which texts each takes in a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.training.loop import Result

Runs = Mapping[tuple[str, int], Result]  # by (system, seed)
SCHEMES = ("ml-clap", "cacl", "kcl")
SAMPLINGS = {"random": "ml-clap", "pair": "cacl", "all": "kcl"}  # of `language_plan`, by the scheme that takes so


class Step(NamedTuple):
    """One optimiser step: numbers of its clips `(B,)`, and the languages taken of each, `(B, K)` boolean."""

    items: Tensor
    taken: Tensor


def take(clips: int, languages: int, sampling: str, generator: torch.Generator) -> Tensor:
    """Which languages training takes of each clip, `(N, K)` boolean: "random" one, "pair" the first and one other.

    Example:
        >>> take(3, 8, "pair", torch.Generator().manual_seed(0)).sum(dim=1).tolist()
        [2, 2, 2]
    """
    always = int(sampling == "pair")  # so many of the first languages
    chosen = torch.randint(always, languages, (clips,), generator=generator)
    taken = F.one_hot(chosen, languages).bool()
    taken[:, :always] = True
    return taken


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

"""Losses that stand in for the library's while training is probed: what a loss computes is in its own probe alone.

A stand-in has the doors of the loss whose name it bears (what it needs and uses, its options, languages, temperature)
and arithmetic of its own: a softmax over similarities, a number and a network that it learns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.losses import TERMS, Loss, LossCard, Output
from pullpush.losses.temperature import Temperature

FLAT = 0.05  # weight of what is no embedding


@contextmanager
def standing_in() -> Iterator[None]:
    """Let every loss be stood in for, in this thread."""
    with TERMS.standing_in({name: _card(card) for name, card in TERMS.items()}):
        yield


def _card(card: LossCard) -> LossCard:
    real = card.make
    named = [(name, Parameter.empty) for name in real.needs] + [(name, None) for name in real.uses]

    def forward(self: Any, *given: Tensor, **others: Tensor | None) -> Output:
        return self.told(dict(zip(real.needs, given, strict=False)) | others)

    takes = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in named]
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = Signature([itself, *takes])  # pyrefly: ignore[missing-attribute]
    doors = {name: getattr(real, name) for name in ("needs", "uses", "languages", "shares_temperature")}
    make = type(real.__name__, (StandIn,), {"forward": forward, "__signature__": signature(real), **doors})
    return LossCard(name=card.name, make=make, title=card.title, about=card.about, sampling=card.sampling)


class StandIn(Loss):
    """The arithmetic of all stand-ins; options: those of the loss, of which a temperature alone counts."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        given = {name: option.default for name, option in signature(type(self)).parameters.items()} | options
        if isinstance(given.get("tau"), float | int):
            self.temperature = Temperature(given["tau"], learnable=bool(given.get("learnable", False)))
        self.number = nn.Parameter(torch.tensor(0.5))
        self.network = nn.Linear(2, 1)

    def told(self, given: dict[str, Tensor | None]) -> Output:
        """A softmax over the similarities of the first embeddings and the last, with a little of everything else."""
        there = {name: x for name, x in given.items() if x is not None}
        over = 0 if self.languages == "groups" else 1  # (G, N, d) or (N, K, d)
        embeddings = [x for name, x in there.items() if x.is_floating_point() and name != "teacher_similarity"]
        rows = [x if x.ndim == 2 else x.mean(dim=over) for x in embeddings]
        first, last = rows[0], rows[-1]
        tau = 1.0 if self.temperature is None else self.temperature()
        similarity = first @ last.T / tau
        value = F.cross_entropy(similarity, torch.arange(len(first), device=first.device))
        rest = sum(x.to(first.dtype).mean() for name, x in there.items() if not x.is_floating_point())
        if (teachers := there.get("teacher_similarity")) is not None:
            rest = rest + (similarity - teachers).square().mean()
        learnt = self.network(torch.stack([first.std(), last.std()])).squeeze() * self.number
        return Output(value + FLAT * (rest + learnt), {"similarity": similarity.detach().mean()})

    @property
    def learnt(self) -> dict[str, Tensor]:
        """Its number."""
        return {"number": self.number.detach()}

"""A batch to a loss: encode, gather, sum the terms of the recipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pullpush.data.batches import Batch
from pullpush.losses.temperature import Temperature, Tempered
from pullpush.training.chunked import chunk_size, embed_unique
from pullpush.training.distributed import gather, world
from pullpush.training.recipes import Pair, Recipe


class Outcome(NamedTuple):
    """Loss of a batch (0-d, float32), the unweighted value of each term, and the embeddings of all processes."""

    loss: Tensor
    terms: tuple[Tensor, ...]
    pair: Pair


class Objective(nn.Module):
    """A model with the loss terms of a recipe: Batch → Outcome.

    model: has `encode_audio(audio (B, T), lengths (B,))` and `encode_text(texts, languages)`, each giving `(B, d)`
    L2-normalised, as a `DualEncoder` has.
    """

    def __init__(self, model: nn.Module, recipe: Recipe) -> None:
        super().__init__()
        self.model = model
        self.terms = nn.ModuleList(term.create(recipe.batch_size) for term in recipe.terms)
        self.temperature = share_temperature(self.terms, recipe)
        self.weights = [term.weight for term in recipe.terms]
        clips = -(-recipe.batch_size // world()[1])  # in this process, rounded up
        self.chunk = chunk_size(model, recipe.text_chunk, sampling=recipe.sampling, clips=clips)

    def forward(self, batch: Batch) -> Outcome:
        """The loss over the batches of all processes together."""
        # Texts first: a second encoding with the same random state then meets the same dropout (see diagnostics).
        text, *parallel = self.embed(batch)
        audio = gather(_wide(self.model.encode_audio(batch.audio, batch.lengths)))
        pair = Pair(audio, text, tuple(parallel), present(batch))
        with torch.autocast(audio.device.type, enabled=False):  # similarities near 1 do not bear bfloat16
            terms = tuple(term(pair) for term in self.terms)
        loss = sum(weight * term for weight, term in zip(self.weights, terms, strict=True))
        return Outcome(loss, terms, pair)

    def embed(self, batch: Batch) -> tuple[Tensor, ...]:
        """Embeddings of the main and each list of parallel texts of all processes, 1 + K times `(N, d)`."""
        return tuple(map(gather, self.embed_here(batch)))

    def embed_here(self, batch: Batch) -> tuple[Tensor, ...]:
        """Embeddings of the main and each list of parallel texts of this process; rows of missing ones are zero."""
        if self.chunk or not all(map(all, batch.there)):
            local = embed_unique(self.model, batch, self.chunk)
        else:
            columns = zip((batch.texts, *batch.parallel), (batch.languages, *batch.parallel_languages), strict=True)
            local = tuple(self.model.encode_text(*column) for column in columns)
        return tuple(map(_wide, local))

    @property
    def tau(self) -> float | None:
        """The temperature in use; None where no term has one."""
        return None if self.temperature is None else float(torch.as_tensor(self.temperature()).detach())

    def report(self) -> dict[str, float]:
        """What the terms say of the last batch, such as SVR's mean radius; the second to use a name adds its number."""
        told: dict[str, float] = {}
        for number, term in enumerate(self.terms):
            for name, value in term.report().items() if hasattr(term, "report") else ():
                told[f"{name} {number}" if name in told else name] = float(value)
        return told


def share_temperature(terms: Iterable[nn.Module], recipe: Recipe) -> Temperature | None:
    """Give the temperature of the first term that has one to all others, but those whose options name their own."""
    shared = None
    for term, plan in zip(terms, recipe.terms, strict=True):
        loss = getattr(term, "loss", None)
        if isinstance(loss, Tempered):
            if shared is None:
                shared = loss.temperature
            elif "tau" not in plan.options:
                loss.temperature = shared
    return shared


def present(batch: Batch) -> Tensor | None:
    """Which texts of all processes are there, `(N, 1 + K)` boolean; None if all are."""
    there = torch.tensor(batch.there, device=batch.audio.device).T
    there = gather(there.float()) > 0  # asked of all processes: another one may miss texts
    return None if there.all() else there


def _wide(embedding: Tensor) -> Tensor:
    """At least float32: losses do not bear bfloat16."""
    return embedding.to(torch.promote_types(embedding.dtype, torch.float32))

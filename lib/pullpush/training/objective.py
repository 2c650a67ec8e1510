"""A batch to a loss: encode, gather, sum the terms of the recipe."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pullpush.data.batches import Batch, TrainingData, is_missing, shard
from pullpush.errors import TrainingError
from pullpush.losses import TERMS, Loss, Offer, Output, Temperature, apply
from pullpush.losses.contract import NEEDS
from pullpush.losses.offer import COLUMNS, NoTextError
from pullpush.precision import single
from pullpush.training.chunked import PACKED, chunk_size, embed_unique, in_chunks
from pullpush.training.distributed import gather, world
from pullpush.training.recipes import Recipe

SENTENCES = ("premise", "second_premise", "entailment", "contradiction")  # that come with clips in columns


class Outcome(NamedTuple):
    """Loss of a batch (0-d, float32), the unweighted value and the report of each term, and what they were given."""

    loss: Tensor
    terms: tuple[Tensor, ...]
    reports: tuple[Mapping[str, Tensor], ...]
    offer: Offer


class Objective(nn.Module):
    """A model with the loss terms of a recipe: Batch → Outcome.

    model: has `encode_audio(audio (B, T), lengths (B,))` and `encode_text(texts, languages)`, each giving `(B, d)`
    L2-normalised, as a `DualEncoder` has.
    """

    def __init__(self, model: nn.Module, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe
        self.terms = nn.ModuleList(term.create(-(-recipe.batch_size // recipe.loss_parts)) for term in recipe.terms)
        self.temperature = share_temperature(self.terms, recipe)
        self.tau_start = self.temperature.fixed if self.temperature else None
        if recipe.tau_end and not self.tau_start:
            raise ValueError(f"{recipe.name!r} has tau_end, and no fixed temperature that could go there: leave it out")
        self.weights = [term.weight for term in recipe.terms]
        self.needed = needed_columns(recipe)
        clips = -(-recipe.batch_size // world()[1])  # in this process, rounded up
        sampling = "all" if recipe.captions == "all" else recipe.sampling  # many texts a clip, either way
        self.chunk = chunk_size(model, recipe.text_chunk, sampling=sampling, clips=clips)

    @cached_property
    def learning(self) -> list[list[nn.Parameter]]:
        """What learns of the encoders, and of the terms, when it is first asked for."""
        return [[weight for weight in part.parameters() if weight.requires_grad] for part in (self.model, self.terms)]

    def forward(self, batch: Batch) -> Outcome:
        """The loss over the batches of all processes together.

        Raises:
            TrainingError: the batch does not bring a column that a term needs.
        """
        # Texts first: a second encoding with the same random state then meets the same dropout (see diagnostics).
        text, *parallel = self.embed(batch)
        audio = gather(single(in_chunks(self.model.encode_audio, batch.audio, batch.lengths, self.recipe.audio_chunk)))
        return self.outcome(Offer(audio, text, tuple(parallel), present(batch), **self.further(batch)))

    def outcome(self, offer: Offer) -> Outcome:
        """The loss of what a batch offers."""
        parts = parts_of(offer, self.recipe.loss_parts)
        outputs = [in_parts(term, parts) for term in self.terms]
        values = tuple(output.value for output in outputs)
        loss = sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        # pyrefly: ignore[bad-argument-type]
        return Outcome(loss, values, tuple(dict(output.report) for output in outputs), offer)

    def embed(self, batch: Batch) -> tuple[Tensor, ...]:
        """Embeddings of the main and each list of parallel texts of all processes, 1 + K times `(N, d)`."""
        return tuple(map(gather, self.embed_here(batch)))

    def embed_here(self, batch: Batch) -> tuple[Tensor, ...]:
        """Embeddings of the main and each list of parallel texts of this process; rows of missing ones are zero."""
        if self.chunk or not all(map(all, batch.present)):
            local = embed_unique(self.model, batch, self.chunk, cached=self.recipe.text_chunk != PACKED)
        else:
            columns = zip((batch.texts, *batch.parallel), (batch.languages, *batch.parallel_languages), strict=True)
            local = tuple(self.model.encode_text(*column) for column in columns)
        return tuple(map(single, local))

    def further(self, batch: Batch) -> dict[str, Tensor]:
        """What only some terms need or use, of all processes: a second pass, NLI sentences, teachers, clusters …"""
        check_columns(self.needed, batch.columns)
        makers: dict[str, Callable[[Batch], Tensor]] = {
            "second_text": lambda batch: self._embed_main(batch, batch.texts),
            **{need: partial(self._embed_sentences, need) for need in SENTENCES},
            "teacher_similarity": _teacher_similarity,
            "clusters": lambda batch: gather(batch.columns["clusters"].long()),  # pyrefly: ignore[missing-attribute]
            "ids": lambda batch: gather(batch.index),
            "text_ids": lambda batch: gather(torch.tensor(list(map(_number, batch.texts)), device=batch.index.device)),
        }
        wanted = {name for term in self.terms for name in (*term.needs, *term.uses)}
        offered = {name for name in wanted if name not in COLUMNS or COLUMNS[name] in batch.columns}
        return {name: make(batch) for name, make in makers.items() if name in offered}

    def _embed_main(self, batch: Batch, texts: Sequence[str | None]) -> Tensor:
        """Embeddings `(N, d)` of one text a clip, in the clips' main languages."""
        return self.embed(replace(batch, texts=list(texts), parallel=(), parallel_languages=()))[0]

    def _embed_sentences(self, need: str, batch: Batch) -> Tensor:
        """Embeddings `(N, d)` of the sentences that come with the clips in a column."""
        sentences = batch.columns[COLUMNS[need]]
        if poor := [row for row, text in zip(batch.index.tolist(), sentences, strict=True) if is_missing(text)]:
            raise TrainingError(f"clips {poor} have no {COLUMNS[need]}: leave them out, or give each a sentence")
        return self._embed_main(batch, sentences)  # pyrefly: ignore[bad-argument-type]

    def anneal(self, done: float) -> None:
        """Set the temperature of a step where it goes to the recipe's `tau_end`; done: share of the training so far."""
        if self.temperature and self.tau_start and self.recipe.tau_end:
            self.temperature.fixed = self.tau_start ** (1 - done) * self.recipe.tau_end**done

    @property
    def tau(self) -> Tensor | None:
        """The temperature in use, 0-d; None where no term has one."""
        return None if self.temperature is None else _as_it_is(self.temperature())

    def numbers(self, outcome: Outcome) -> dict[str, Tensor]:
        """What the terms saw of a batch and have learnt by now, 0-d; the second term to use a name adds its number."""
        row: dict[str, Tensor] = {}
        for number, (term, report) in enumerate(zip(self.terms, outcome.reports, strict=True)):
            for name, value in {**report, **term.learnt}.items():
                row[f"{name} {number}" if name in row else name] = _as_it_is(value)
        return row


def parts_of(offer: Offer, count: int) -> list[Offer]:
    """A batch in `count` parts of consecutive clips, as processes see it that do not exchange their embeddings; parts
    without clips are left out. Itself for a count of 1.

    >>> clips = torch.eye(5)
    >>> [len(part.audio) for part in parts_of(Offer(clips, clips), 2)]
    [2, 3]
    """
    if count == 1:
        return [offer]
    clips = list(range(len(offer.audio)))
    return [offer.part(rows) for rows in (shard(clips, part, count) for part in range(count)) if rows]


def in_parts(term: nn.Module, parts: Sequence[Offer]) -> Output:
    """The mean over parts of a batch, of the value and of each number that is reported; 0 where no part has a text."""
    outputs = []
    for part in parts:
        with suppress(NoTextError):
            outputs.append(apply(term, part))
    if not outputs:
        return Output(0.0 * parts[0].audio.sum())
    if len(outputs) == 1:
        return outputs[0]
    reports = [output.report for output in outputs]
    means = {name: torch.stack([report[name] for report in reports]).mean() for name in reports[0]}
    return Output(torch.stack([output.value for output in outputs]).mean(), means)


def bring_columns(dataset: TrainingData, recipe: Recipe) -> None:
    """Have batches bring the columns that the terms need, and of those that they merely use what the clips have.

    Raises:
        TrainingError: see `check_columns`.
    """
    offered = dataset.offered if recipe.columns else {}
    check_columns(needed_columns(recipe), offered)
    dataset.bring([column for column in recipe.columns if column in offered])


def needed_columns(recipe: Recipe) -> list[tuple[str, str]]:
    """The columns that the terms of a recipe need, each with what is wrong where clips do not offer it."""
    return [
        (
            COLUMNS[need],
            f"term {term.name!r} needs {need} ({NEEDS[need]}), which these clips do not offer: give them a column "
            f"{COLUMNS[need]!r} and make the batches with PairDataset(columns={recipe.columns})",
        )
        for term in recipe.terms
        for need in TERMS[term.name].make.needs
        if need in COLUMNS
    ]


def check_columns(needed: Iterable[tuple[str, str]], offered: Iterable[str]) -> None:
    """Require columns, given as `needed_columns` does; TrainingError says what to do."""
    for column, wrong in needed:
        if column not in offered:
            raise TrainingError(wrong)


def share_temperature(losses: Iterable[Loss], recipe: Recipe) -> Temperature | None:
    """Give the temperature of the first term that shares one to all others, but those whose options name their own."""
    shared = None
    for loss, term in zip(losses, recipe.terms, strict=True):
        if loss.temperature is None or not loss.shares_temperature:
            continue
        if shared is None:
            shared = loss.temperature
        elif "tau" not in term.options:
            if loss.temperature.fixed is None and shared.fixed is not None:
                warnings.warn(
                    f"{term.name!r} does not learn its temperature: it shares that of an earlier term, which is fixed. "
                    f"Name {term.name!r} first, or give it a tau",
                    stacklevel=2,
                )
            loss.temperature = shared
    return shared


def present(batch: Batch) -> Tensor | None:
    """Which texts of all processes are present, `(N, 1 + K)` boolean; None if all are."""
    here = batch.present
    if world()[1] == 1 and all(map(all, here)):
        return None  # without a look at the device
    texts_present = torch.tensor(here, device=batch.audio.device).T
    texts_present = gather(texts_present.float()) > 0  # asked of all processes: another one may miss texts
    return None if texts_present.all() else texts_present


def _as_it_is(value: Tensor | float) -> Tensor:
    """A number, 0-d, that later steps do not change."""
    return torch.as_tensor(value).detach().clone().reshape(())


def _number(text: str | None) -> int:
    """A number for a text, the same in every process."""
    return int.from_bytes(blake2b((text or "").encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def _teacher_similarity(batch: Batch) -> Tensor:
    """`(N, N)` float32: entry i, j is the mean over teachers of (clip i)·(text j)."""
    # pyrefly: ignore[missing-attribute]
    audio, text = gather(batch.columns["teachers"].float()).unbind(dim=2)  # (N, T, D) each
    with torch.autocast(audio.device.type, enabled=False):
        return torch.einsum("itd,jtd->ij", audio, text) / audio.shape[1]

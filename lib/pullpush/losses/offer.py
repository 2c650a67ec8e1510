"""What a batch offers to losses, by name, with each loss applied to the part of it that the loss needs."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pullpush.losses.contract import NEEDS, Loss, Output

# Needs that clips bring in a column; teachers holds `(T, 2, D)` for each clip: what T teachers make of its sound and of
# its caption, L2-normalised, padded with zeros where they differ in D.
COLUMNS = {
    "premise": "premise",
    "second_premise": "premise",
    "entailment": "entailment",
    "contradiction": "contradiction",
    "teacher_similarity": "teachers",
    "clusters": "clusters",
}
OF_TEXTS = {"text", "second_text"}  # no row where the main text is missing


class NoTextError(ValueError):
    """No clip of a batch has the text that a loss needs."""


class Offer(NamedTuple):
    """Embeddings `(N, d)`, float32, and what else is known of a batch; row i of each belongs to clip i. See `NEEDS`."""

    audio: Tensor
    text: Tensor
    parallel: tuple[Tensor, ...] = ()
    """Further texts of the same clips, each `(N, d)`; see `PairDataset`."""
    present: Tensor | None = None
    """`(N, 1 + K)` boolean, False where the main or parallel text is missing (its row is zero); None: none is."""
    second_text: Tensor | None = None
    premise: Tensor | None = None
    second_premise: Tensor | None = None
    entailment: Tensor | None = None
    contradiction: Tensor | None = None
    teacher_similarity: Tensor | None = None
    clusters: Tensor | None = None
    ids: Tensor | None = None
    text_ids: Tensor | None = None

    @property
    def texts(self) -> Tensor:
        """`(N, 1 + K, d)`, the main text first."""
        return torch.stack((self.text, *self.parallel), dim=1)

    @property
    def other(self) -> Tensor:
        """`(N, d)`, the one parallel text."""
        (other,) = self.parallel
        return other

    def language(self, number: int) -> "Offer | None":
        """The clips that have a text in the main (0) or a parallel list, with that as their text; None if none has."""
        offer = self._replace(text=(self.text, *self.parallel)[number], parallel=(), present=None)
        if self.present is None:
            return offer
        rows = self.present[:, number]
        return offer.part(rows) if rows.any() else None

    def part(self, rows: Tensor | list[int]) -> "Offer":
        """Some of the clips, by their numbers or a boolean `(N,)`, with all that is known of them."""
        chosen: dict[str, Any] = {name: x[rows] for name, x in self._asdict().items() if torch.is_tensor(x)}
        if self.teacher_similarity is not None:
            chosen["teacher_similarity"] = self.teacher_similarity[rows][:, rows]
        if self.present is not None and chosen["present"].all():
            chosen["present"] = None
        return self._replace(parallel=tuple(texts[rows] for texts in self.parallel), **chosen)


def apply(loss: Loss, offer: Offer) -> Output:
    """A loss of what a batch offers; which of several languages it sees is declared by the loss.

    A loss of `text` sees the clips that have one. With `languages` "each" or "groups" it is the mean over the main and
    the parallel texts, so that a regulariser made for pairs goes with multilingual losses at the scale that it has with
    one language. Where translations are missing, a language's loss is over the clips that have it and counts as often
    as they are; "groups" is one call with all languages where none is missing.

    Raises:
        ValueError: the batch does not offer what the loss needs.

    Example:
        >>> from pullpush.losses import CACL
        >>> clips = torch.eye(3)
        >>> apply(CACL(tau=0.5), Offer(clips, clips, parallel=(clips,))).value
        tensor(0.2395)
    """
    needs, name = {*loss.needs}, type(loss).__name__
    if "other" in needs and len(offer.parallel) != 1:
        raise ValueError(
            f"{name} takes each clip's main text and one in another language, got {len(offer.parallel)} others: "
            'give the recipe sampling="pair" and at least two languages'
        )
    if "other" in needs and offer.present is not None:
        raise ValueError(f'texts are missing, which {name} needs: give the recipe sampling="pair"')
    if "texts" in needs and offer.present is not None and "present" not in loss.uses:
        raise ValueError(f'texts are missing, which {name} needs: leave such clips out, or let the loss use "present"')
    texts = (len(offer.text), 1 + len(offer.parallel))
    if offer.present is not None and (offer.present.dtype != torch.bool or offer.present.shape != texts):
        raise ValueError(
            f"present must be boolean {texts}, a row a clip and a column a text, got {offer.present.dtype} "
            f"{tuple(offer.present.shape)}"
        )
    if needs & {"other", "texts"} or not needs & OF_TEXTS:
        return _call(loss, offer)
    if loss.languages != "main":
        return _each_language(loss, offer)
    if (main := offer.language(0)) is None:
        raise NoTextError(f"no clip of this batch has a text in the main language, which {loss} needs")
    return _call(loss, main)


def _each_language(loss: Loss, offer: Offer) -> Output:
    """The mean over languages, of the value and of each number that is reported."""
    if loss.languages == "groups" and offer.present is None:
        texts = torch.stack((offer.text, *offer.parallel))
        return loss(offer.audio.expand_as(texts), texts)
    values, reports = [], []
    for part in filter(None, map(offer.language, range(1 + len(offer.parallel)))):
        share = 1 if offer.present is None else len(part.text) * offer.present.shape[1] / int(offer.present.sum())
        value, report = _call(loss, part)
        values.append(share * value)
        reports.append(report)
    if not values:
        raise NoTextError(f"no clip of this batch has a text, which {type(loss).__name__} needs")
    means = {name: sum(report[name] for report in reports) / len(reports) for name in reports[0]}
    return Output(sum(values) / (1 + len(offer.parallel)), means)  # pyrefly: ignore[bad-argument-type]


def _call(loss: Loss, offer: Offer) -> Output:
    given = {name: getattr(offer, name) for name in (*loss.needs, *loss.uses)}
    given = {name: tensor for name, tensor in given.items() if tensor is not None}
    if missing := [name for name in loss.needs if name not in given]:
        raise ValueError(
            f"{type(loss).__name__} needs {missing[0]}, which this batch does not offer: {NEEDS[missing[0]]}"
        )
    return loss(**given)

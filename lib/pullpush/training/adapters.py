"""How losses with different arguments read one batch: each adapter makes of a loss a term, Pair → 0-d loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Pair(NamedTuple):
    """What a loss term sees of a batch: embeddings `(N, d)`, float32, row i of each belongs to clip i."""

    audio: Tensor
    text: Tensor
    parallel: tuple[Tensor, ...] = ()
    """K further texts of the same clips, each `(N, d)`; see `PairDataset`."""
    present: Tensor | None = None
    """`(N, 1 + K)` boolean, False where the main or parallel text is missing (its row is zero); None: all are there."""

    def columns(self) -> Iterator[tuple[Tensor, Tensor]]:
        """For the main and each parallel list of texts, `(n, d)` audio and text of the n clips that have it; n ≥ 1."""
        for number, text in enumerate((self.text, *self.parallel)):
            if self.present is None:
                yield self.audio, text
            elif (rows := self.present[:, number]).any():
                yield self.audio[rows], text[rows]


class OnPair(nn.Module):
    """Use a loss of (audio, text) as a term: the main texts alone, of the clips that have one.

    Raises:
        ValueError: when called with main texts that are all missing.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        if pair.present is not None and not pair.present[:, 0].any():
            raise ValueError(f"no clip of this batch has a text in the main language, which {self.loss} needs")
        return self.loss(*next(pair.columns()))

    def report(self) -> dict[str, Tensor]:
        """What the loss has to say of its last batch, 0-d each, by the name of the column in the steps' table."""
        return self.loss.report() if hasattr(self.loss, "report") else {}


class OnEachLanguage(OnPair):
    """Use a loss of (audio, text) as a term: its mean over the main and the parallel texts.

    So a regulariser made for pairs goes with multilingual losses at the scale that it has with one language. Where
    translations are missing, a language's loss is over the clips that have it and counts as often as they are.

    A loss with a true attribute `groups` takes `(G, N, d)` for the mean over G, as `SVR` does; where no text is missing
    it is called once, with all languages, rather than once for each.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(loss)
        self.reports: list[dict[str, Tensor]] = []

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        if pair.present is None and getattr(self.loss, "groups", False):
            texts = torch.stack((pair.text, *pair.parallel))
            loss = self.loss(pair.audio.expand_as(texts), texts)
            self.reports = [super().report()]
            return loss
        losses, self.reports = [], []
        for audio, text in pair.columns():
            share = 1 if pair.present is None else len(text) * pair.present.shape[1] / int(pair.present.sum())
            losses.append(share * self.loss(audio, text))
            self.reports.append(super().report())
        return sum(losses) / (1 + len(pair.parallel))

    def report(self) -> dict[str, Tensor]:
        """The mean over the languages."""
        names = self.reports[0] if self.reports else {}
        return {name: torch.stack([report[name] for report in self.reports]).mean() for name in names}


class OnLanguages(OnPair):
    """Use a loss of (audio, texts `(N, K, d)`) as a term: the main text first, then the parallel ones.

    Where texts are missing the loss is also given `present`, `(N, K)` boolean.
    """

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        known = {} if pair.present is None else {"present": pair.present}
        return self.loss(pair.audio, torch.stack((pair.text, *pair.parallel), dim=1), **known)


class OnTriplet(OnPair):
    """Use a loss of (audio, main text, one other text) as a term.

    Raises:
        ValueError: when called with other than one parallel text, or with missing ones.
    """

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        if len(pair.parallel) != 1:
            raise ValueError(
                f"{type(self.loss).__name__} takes each clip's main text and one in another language, got "
                f'{len(pair.parallel)} others: give the recipe sampling="pair" and at least two languages'
            )
        if pair.present is not None:
            raise ValueError(
                f'texts are missing, which {type(self.loss).__name__} needs: give the recipe sampling="pair"'
            )
        return self.loss(pair.audio, pair.text, pair.parallel[0])

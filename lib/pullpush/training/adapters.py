"""How losses with different arguments read one batch: each adapter makes of a loss a term, Pair → 0-d loss."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Pair(NamedTuple):
    """What a loss term sees of a batch: embeddings `(N, d)`, float32, row i of each belongs to clip i."""

    audio: Tensor
    text: Tensor
    parallel: tuple[Tensor, ...] = ()
    """K further texts of the same clips, each `(N, d)`; see `PairDataset`."""


class OnPair(nn.Module):
    """Use a loss of (audio, text) as a term: the main texts alone."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        return self.loss(pair.audio, pair.text)

    def report(self) -> dict[str, Tensor]:
        """What the loss has to say of its last batch, 0-d each, by the name of the column in the steps' table."""
        return self.loss.report() if hasattr(self.loss, "report") else {}


class OnEachLanguage(OnPair):
    """Use a loss of (audio, text) as a term: its mean over the main and the parallel texts.

    So a regulariser made for pairs goes with multilingual losses at the scale that it has with one language.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(loss)
        self.reports: list[dict[str, Tensor]] = []

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        losses, self.reports = [], []
        for text in (pair.text, *pair.parallel):
            losses.append(self.loss(pair.audio, text))
            self.reports.append(super().report())
        return sum(losses) / len(losses)

    def report(self) -> dict[str, Tensor]:
        """The mean over the languages."""
        names = self.reports[0] if self.reports else {}
        return {name: torch.stack([report[name] for report in self.reports]).mean() for name in names}


class OnLanguages(OnPair):
    """Use a loss of (audio, texts `(N, K, d)`) as a term: the main text first, then the parallel ones."""

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        return self.loss(pair.audio, torch.stack((pair.text, *pair.parallel), dim=1))


class OnTriplet(OnPair):
    """Use a loss of (audio, main text, one other text) as a term.

    Raises:
        ValueError: when called with other than one parallel text.
    """

    def forward(self, pair: Pair) -> Tensor:
        """The 0-d loss."""
        if len(pair.parallel) != 1:
            raise ValueError(
                f"{type(self.loss).__name__} takes each clip's main text and one in another language, got "
                f'{len(pair.parallel)} others: give the recipe sampling="pair" and at least two languages'
            )
        return self.loss(pair.audio, pair.text, pair.parallel[0])

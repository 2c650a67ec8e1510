"""Unsupervised SimCSE: a text finds itself again under other dropout (On the Language Encoder §3)."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import check_choice, check_shapes, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked

Duplicates = Literal["keep", "mask"]


def simcse(view1: Tensor, view2: Tensor, tau: float | Tensor = 0.05, *, text_ids: Tensor | None = None) -> Tensor:
    """L_s = −1/N Σⱼ log exp(⟨tⱼ, tⱼ⁺⟩/τ) / Σₖ exp(⟨tⱼ, tₖ⁺⟩/τ): the other texts of the batch are pushed away.

    One direction, from the first pass to the second, as Gao et al. (2021) train and On the Language Encoder prints (as
    a sum over the batch; here its mean). Without dropout in the text encoder the two views are the same, and what is
    left is uniformity: every text is pushed away from all others.

    Scale: one direction, a mean over N.

    Args:
        view1: `(N, d)` L2-normalised embeddings of the texts.
        view2: `(N, d)` of the same texts by a second pass through the encoder, with other dropout.
        tau: temperature, a positive number or a 0-d tensor; 0.05 in both papers.
        text_ids: `(N,)` int64; rows with equal numbers are one text and no negatives of each other. None: they are, as
            published, although nothing can tell a text from itself.

    Returns:
        0-d tensor, float32 at least. Zero for N = 1, and where all texts are one and `text_ids` says so.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings that are not floating point, numbers that are not int64.

    Example:
        >>> simcse(torch.eye(3), torch.eye(3), tau=0.5)
        tensor(0.2395)
    """
    check_temperature(tau)
    with checked(view1=view1, view2=view2) as (first, second):
        logits = first @ second.T / tau
        if text_ids is not None:
            check_shapes(view2=view2, text_ids=text_ids)
            same = (text_ids[:, None] == text_ids).fill_diagonal_(False)
            logits = logits.masked_fill(same, -torch.inf)
        return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


class SimCSE(Tempered):
    """`simcse` of the main texts. Its temperature compares texts with texts and is its own, fixed in the papers.

    duplicates: of a text that comes more than once in a batch, "keep" lets the others be its negatives, as published;
    "mask" leaves them out.

    Example:
        >>> SimCSE(0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.2395)
    """

    needs = ("text", "second_text")
    uses = ("text_ids",)
    shares_temperature = False

    def __init__(self, tau: float = 0.05, *, duplicates: Duplicates = "keep") -> None:
        super().__init__(tau)
        check_choice("duplicates", duplicates, get_args(Duplicates))
        self.duplicates = duplicates

    def forward(self, text: Tensor, second_text: Tensor, text_ids: Tensor | None = None) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        if self.duplicates == "mask" and text_ids is None:
            raise ValueError('duplicates="mask" takes text_ids, which say which texts are the same')
        return Output(simcse(text, second_text, self.tau, text_ids=text_ids if self.duplicates == "mask" else None))


class SentenceSimCSE(Tempered):
    """`simcse` of the premises that come with the clips: NLI's sentences without what follows from them (§A.6).

    Example:
        >>> SentenceSimCSE(0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.2395)
    """

    needs = ("premise", "second_premise")
    shares_temperature = False

    def __init__(self, tau: float = 0.05) -> None:
        super().__init__(tau)

    def forward(self, premise: Tensor, second_premise: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(simcse(premise, second_premise, self.tau))


CARDS = (
    LossCard(
        name="simcse",
        make=SimCSE,
        title="SimCSE",
        about="Each text finds itself under other dropout among all texts of the batch, to be added to a loss.",
        source="SimCSE; On the Language Encoder §3",
        citation="simcse",
    ),
    LossCard(
        name="sentence-simcse",
        make=SentenceSimCSE,
        title="SimCSE on NLI sentences",
        about="SimCSE of the premises that come with the clips, the control of the NLI term, to be added to a loss.",
        source="On the Language Encoder §A.6",
        citation="language_encoder",
    ),
)

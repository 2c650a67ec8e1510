"""Unsupervised SimCSE: a text finds itself again under other dropout (On the Language Encoder §3)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses._checks import check_shapes, check_temperature
from pullpush.losses._precision import no_autocast, widen
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered


def simcse(view1: Tensor, view2: Tensor, tau: float | Tensor = 0.05) -> Tensor:
    """L_s = −1/N Σⱼ log exp(⟨tⱼ, tⱼ⁺⟩/τ) / Σₖ exp(⟨tⱼ, tₖ⁺⟩/τ): the other texts of the batch are pushed away.

    One direction, from the first pass to the second, as Gao et al. (2021) train and On the Language Encoder prints (as
    a sum over the batch; here its mean). Without dropout in the text encoder the two views are the same, and what is
    left is uniformity: every text is pushed away from all others.

    Args:
        view1: `(N, d)` L2-normalised embeddings of the texts.
        view2: `(N, d)` of the same texts by a second pass through the encoder, with other dropout.
        tau: temperature, a positive number or a 0-d tensor; 0.05 in both papers.

    Returns:
        0-d tensor in the dtype of the embeddings, computed in float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> simcse(torch.eye(3), torch.eye(3), tau=0.5)
        tensor(0.2395)
    """
    check_shapes(view1=view1, view2=view2)
    check_temperature(tau)
    with no_autocast(view1):
        first, second = widen(view1, view2)
        logits = first @ second.T / tau
        loss = F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))
    return loss.to(view1.dtype)


class SimCSE(Tempered):
    """`simcse` of the main texts. Its temperature compares texts with texts and is its own, fixed in the papers.

    Example:
        >>> SimCSE(0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.2395)
    """

    needs = ("text", "second_text")
    shares_temperature = False

    def __init__(self, tau: float = 0.05) -> None:
        super().__init__(tau)

    def forward(self, text: Tensor, second_text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(simcse(text, second_text, self.tau))


CARD = LossCard(
    name="simcse",
    make=SimCSE,
    title="SimCSE",
    about="Each text finds itself under other dropout among all texts of the batch, to be added to a loss.",
    source="SimCSE; On the Language Encoder §3",
    citation="simcse",
)

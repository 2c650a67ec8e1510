"""Supervised SimCSE: a premise finds what follows from it (Gao et al. 2021; On the Language Encoder §3)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked


def nli(anchor: Tensor, entailment: Tensor, contradiction: Tensor, tau: float | Tensor = 0.05) -> Tensor:
    """L_n = −1/N Σⱼ log exp(⟨aⱼ, eⱼ⟩/τ) / Σₖ (exp(⟨aⱼ, eₖ⟩/τ) + exp(⟨aⱼ, cₖ⟩/τ)): contradictions are hard negatives.

    Each premise aⱼ is pulled to its entailment eⱼ and pushed away from all other entailments and from every
    contradiction of the batch, its own included. The mean over the batch; entailments and contradictions are no anchors
    themselves. A sentence that comes twice in a batch is a negative of itself, as in both papers.

    Scale: one direction, a mean over N.

    Args:
        anchor: `(N, d)` L2-normalised embeddings of the premises.
        entailment: `(N, d)` of a sentence that follows from each.
        contradiction: `(N, d)` of a sentence that cannot be true with it.
        tau: temperature, a positive number or a 0-d tensor; 0.05 in both papers.

    Returns:
        0-d, float32 at least. For N = 1 the contradiction is the only negative: log(1 + exp((⟨a, c⟩ − ⟨a, e⟩)/τ)).

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> nli(torch.eye(3), torch.eye(3), torch.eye(3).roll(1, 0), tau=0.5)
        tensor(0.9327)
    """
    check_temperature(tau)
    with checked(anchor=anchor, entailment=entailment, contradiction=contradiction) as (first, *second):
        logits = first @ torch.cat(second).T / tau  # (N, 2N): entailments, then contradictions
        return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


class NLI(Tempered):
    """`nli` of the sentences that come with the clips. Its temperature compares texts with texts and is its own.

    Example:
        >>> NLI(0.5)(torch.eye(3), torch.eye(3), torch.eye(3).roll(1, 0)).value
        tensor(0.9327)
    """

    needs = ("premise", "entailment", "contradiction")
    shares_temperature = False

    def __init__(self, tau: float = 0.05) -> None:
        super().__init__(tau)

    def forward(self, premise: Tensor, entailment: Tensor, contradiction: Tensor) -> Output:
        """`(N, d)` each → the loss."""
        return Output(nli(premise, entailment, contradiction, self.tau))


CARD = LossCard(
    name="nli",
    make=NLI,
    title="NLI",
    about="Each premise finds its entailment among all entailments and contradictions of the batch, beside a loss.",
    source="supervised SimCSE; On the Language Encoder §3",
    citation="simcse",
)

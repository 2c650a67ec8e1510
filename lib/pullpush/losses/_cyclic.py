"""CyCLIP's cyclic terms: similarities that depend neither on direction nor on modality (On the Language Encoder §3)."""

from torch import Tensor

from pullpush.losses.contract import Loss, LossCard, Output
from pullpush.precision import checked


def cross_cyclic(audio: Tensor, text: Tensor, *, per_clip: bool = False) -> Tensor:
    """L_C-cyclic = Σⱼₖ (⟨aⱼ, tₖ⟩ − ⟨aₖ, tⱼ⟩)²: the matrix of similarities between the modalities becomes symmetric.

    Printed is the sum over all N² pairs (On the Language Encoder §3; Goel et al. 2022). CyCLIP's published code
    multiplies its mean with N, which is the sum over N: `per_clip=True`. Beside a contrastive loss that is a mean over
    the batch, that keeps the printed ratio of the terms.

    Scale: a sum over the N² pairs, which grows with N; `per_clip` divides it by N.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i belongs to clip i.
        per_clip: whether the sum is divided by N.

    Returns:
        0-d tensor, float32 at least; zero for N = 1. Symmetric in its arguments.

    Raises:
        ValueError: wrong shapes.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> audio, text = torch.eye(2), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
        >>> cross_cyclic(audio, text)  # ⟨a₁, t₂⟩ = 0.6, ⟨a₂, t₁⟩ = 0: 2 · 0.6²
        tensor(0.7200)
    """
    with checked(audio=audio, text=text) as (a, t):
        similarity = a @ t.T
        return _sum_of_squares(similarity - similarity.T, per_clip)


def in_modal_cyclic(audio: Tensor, text: Tensor, *, per_clip: bool = False) -> Tensor:
    """L_I-cyclic = Σⱼₖ (⟨aⱼ, aₖ⟩ − ⟨tₖ, tⱼ⟩)²: two clips are as near to each other as their texts are.

    Args, returns and errors are those of `cross_cyclic`.

    Scale: a sum over the N² pairs, which grows with N; `per_clip` divides it by N.

    Example:
        >>> import torch
        >>> audio, text = torch.eye(2), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
        >>> in_modal_cyclic(audio, text)  # ⟨a₁, a₂⟩ = 0, ⟨t₁, t₂⟩ = 0.6: 2 · 0.6²
        tensor(0.7200)
    """
    with checked(audio=audio, text=text) as (a, t):
        return _sum_of_squares(a @ a.T - t @ t.T, per_clip)


def _sum_of_squares(difference: Tensor, per_clip: bool) -> Tensor:
    total = difference.square().sum()
    return total / len(difference) if per_clip else total


class _Cyclic(Loss):
    """What both terms are told."""

    def __init__(self, *, per_clip: bool = False) -> None:
        super().__init__()
        self.per_clip = per_clip


class CrossCyclic(_Cyclic):
    """`cross_cyclic` as a term.

    Example:
        >>> import torch
        >>> CrossCyclic(per_clip=True)(torch.eye(2), torch.tensor([[1.0, 0.0], [0.6, 0.8]])).value
        tensor(0.3600)
    """

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(cross_cyclic(audio, text, per_clip=self.per_clip))


class InModalCyclic(_Cyclic):
    """`in_modal_cyclic` as a term.

    Example:
        >>> import torch
        >>> InModalCyclic()(torch.eye(2), torch.eye(2)).value
        tensor(0.)
    """

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(in_modal_cyclic(audio, text, per_clip=self.per_clip))


CARDS = (
    LossCard(
        name="cross-cyclic",
        make=CrossCyclic,
        title="cross-modal cyclic",
        about="Clip j and text k are as similar as clip k and text j, to be added to a loss.",
        source="On the Language Encoder §3; CyCLIP",
        citation="language_encoder",
    ),
    LossCard(
        name="in-modal-cyclic",
        make=InModalCyclic,
        title="in-modal cyclic",
        about="Two clips are as similar to each other as their texts are, to be added to a loss.",
        source="On the Language Encoder §3; CyCLIP",
        citation="language_encoder",
    ),
)

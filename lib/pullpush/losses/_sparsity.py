"""The ratio of ℓ1 to ℓ2 norm of a batch of embeddings: the regulariser of GLAP's published code."""

import torch
from torch import Tensor

from pullpush.losses.contract import Loss, LossCard, Output
from pullpush.precision import checked


def sparsity(audio: Tensor, text: Tensor) -> Tensor:
    """L = mean|A|/‖A‖_F + mean|T|/‖T‖_F, over all N·d numbers of the batch: small where few dimensions are in use.

    GLAP's published code adds it to its loss, as WavCaps' does; the paper does not name it. But for a constant it is
    the ratio of ℓ1 to ℓ2 norm, which does not change with the scale of the embeddings. Of unit rows ‖A‖_F is √N and
    the mean at most 1/√d, so that the value is at most 2/√(N·d), 0.0055 at N = 128 and d = 1,024: as in the
    published code, `recipe("siglip+sparsity")`, it hardly counts; a larger weight is `Term("sparsity", 1000)`'s.

    Scale: both modalities are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; their order does not matter.

    Returns:
        0-d tensor, float32 at least. Zero, with zero gradient, for embeddings that are all zero.

    Raises:
        ValueError: wrong shapes.
        TypeError: embeddings that are not floating point.

    Example:
        >>> one_hot, spread = torch.eye(4), torch.full((4, 4), 0.5)
        >>> sparsity(one_hot, one_hot), sparsity(spread, spread)  # 2 · (1/4)/2 and 2 · (1/2)/2
        (tensor(0.2500), tensor(0.5000))
    """
    with checked(audio=audio, text=text) as both:
        return torch.stack([_ratio(x) for x in both]).sum()


def _ratio(embeddings: Tensor) -> Tensor:
    """`(N, d)` → mean|e|/‖E‖_F."""
    length = torch.linalg.vector_norm(embeddings)
    return embeddings.abs().mean() / length.clamp(min=torch.finfo(length.dtype).tiny)


class Sparsity(Loss):
    """`sparsity` as a term, the mean over languages where there are several.

    Example:
        >>> Sparsity()(torch.eye(4), torch.eye(4)).value
        tensor(0.2500)
    """

    languages = "each"

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(sparsity(audio, text))


CARD = LossCard(
    name="sparsity",
    make=Sparsity,
    title="Sparsity",
    about="Embeddings use few dimensions: the ratio of their ℓ1 to their ℓ2 norm, to be added to a loss.",
    source="GLAP's published code, after WavCaps'",
    citation="glap",
)

"""CACL: audio and English as co-anchors of one text in another language (ATRI §4.2)."""

from torch import Tensor

from pullpush.checks import check_shapes
from pullpush.losses._ml_clap import ml_clap
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered


def cacl(audio: Tensor, english: Tensor, other: Tensor, tau: float | Tensor = 0.07) -> Tensor:
    """Audio–English co-anchor contrastive learning (ATRI Eq. 12–13).

    The symmetric contrastive sum over N of Eq. 13 for audio–English, audio–other and English–other, times 1/(6N).

    Scale: both directions and all three pairs are averaged.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        english: `(N, d)` L2-normalised embeddings of the English texts.
        other: `(N, d)` L2-normalised embeddings of the texts in a random other language, one per clip and epoch
            (`PairDataset(sampling="pair")`).
        tau: temperature, a positive number or a 0-d tensor that gradients reach.

    Returns:
        0-d tensor, float32 at least. Symmetric in all three arguments.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> cacl(torch.eye(3), torch.eye(3), torch.eye(3), tau=0.5)
        tensor(0.2395)
    """
    check_shapes(audio=audio, english=english, other=other)
    return (ml_clap(audio, english, tau) + ml_clap(audio, other, tau) + ml_clap(english, other, tau)) / 3  # Eq. 12


class CACL(Tempered):
    """`cacl` with a fixed or learnable temperature.

    Example:
        >>> import torch
        >>> CACL(0.5)(torch.eye(3), torch.eye(3), torch.eye(3)).value
        tensor(0.2395)
    """

    needs = ("audio", "text", "other")

    def forward(self, audio: Tensor, text: Tensor, other: Tensor) -> Output:
        """`(N, d)`, `(N, d)` of English, `(N, d)` → the loss."""
        return Output(cacl(audio, text, other, self.tau))


CARD = LossCard(
    name="cacl",
    make=CACL,
    title="CACL",
    about="Clip, English text and one text in another language, each pair of the three by InfoNCE.",
    source="ATRI Eq. 12–13",
    citation="atri",
    colour="orange",
    sampling="pair",
)

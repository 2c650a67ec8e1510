"""ML-CLAP: InfoNCE of each clip with its text in one language, drawn at random (ATRI §3.1).

ML-CLAP, KCL and CACL are averages of one symmetric term, ½ (InfoNCE a2t + InfoNCE t2a), over different pairs. So their
scales agree, and half that of `info_nce`, which sums its directions as SupCLAP does.
"""

from torch import Tensor

from pullpush.losses._info_nce import info_nce
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered


def ml_clap(audio: Tensor, text: Tensor, tau: float | Tensor = 0.07) -> Tensor:
    """ML-CLAP's loss: InfoNCE with its two directions averaged, on texts of mixed languages (ATRI Eq. 4).

    Which language each text is in is the data set's choice (`PairDataset(sampling="random")`: one language per clip
    and epoch). The negatives of a text therefore come in other languages than its own, as in Eq. 4.

    The training goal that ATRI prints for it, Eq. 5, weights each log-probability with the probability itself and has
    one denominator over the matching pairs alone; that sum of p·log p is the negative entropy of p and knows no
    mismatched pair. ATRI's own loss with K = 1 is this one, and so is that of Yan et al. (2024).

    Scale: both directions are averaged: half of `info_nce`.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i belongs to clip i.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.

    Returns:
        0-d tensor, half of `info_nce(audio, text, tau)`.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> ml_clap(torch.eye(3), torch.eye(3), tau=0.5)
        tensor(0.2395)
    """
    return info_nce(audio, text, tau) / 2


class MLCLAP(Tempered):
    """`ml_clap` with a fixed or learnable temperature.

    Example:
        >>> import torch
        >>> MLCLAP(0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.2395)
    """

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(ml_clap(audio, text, self.tau))


CARD = LossCard(
    name="ml-clap",
    make=MLCLAP,
    title="ML-CLAP",
    about="InfoNCE of each clip with its text in one language, drawn anew for each clip and epoch.",
    source="ATRI Eq. 4",
    citation="atri",
    colour="purple",
    sampling="random",
)

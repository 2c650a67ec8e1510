"""Focal loss: InfoNCE that weights each pair by how hard it still is."""

from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature
from pullpush.losses._softmax import negatives
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import EXACT, checked


def focal(
    audio: Tensor,
    text: Tensor,
    gamma: float = 2.0,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    detach: bool = False,
) -> Tensor:
    """−(1 − P⁺)^γ log P⁺, P⁺ the softmax probability of the positive (Lin et al. 2017, Eq. 4); γ = 0 is `info_nce`.

    Pairs that fit, P⁺ near 1, fade; with a greater γ sooner. As printed, the weight has a gradient too: beside
    (1 − P⁺)^γ times that of −log P⁺ there is the change of the weight. With `detach=True` the weight is a constant:
    hard-pair weighting, which multiplies the InfoNCE gradient of each pair by a number and leaves its direction.
    Value and gradient are finite for every γ ≥ 0, also where P⁺ rounds to 1.

    Scale: each direction is a mean over N, and the two are summed. All N × N similarities are held at once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        gamma: γ ≥ 0, the paper's "focusing" parameter.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        detach: whether the weight is held constant.

    Returns:
        0-d tensor, mean over N, float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, a γ that is negative or not finite, a temperature that is not positive, an unknown
            direction.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> pairs = torch.eye(3)  # P⁺ = 0.787 for all
        >>> focal(pairs, pairs, 0.0, tau=0.5), focal(pairs, pairs, 2.0, tau=0.5)
        (tensor(0.4791), tensor(0.0217))
    """
    check_number("gamma", gamma, least=0)
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    with checked(audio=audio, text=text) as (a, t):
        logits = t @ a.T / tau  # (N, N): texts in rows
        loss = logits.new_zeros(())
        for scores in {"t2a": [logits], "a2t": [logits.T], "both": [logits, logits.T]}[direction]:
            # x = log Σ exp(s⁻) − s⁺ says it all without rounding at P⁺ = 1: 1 − P⁺ = σ(x), −log P⁺ = softplus(x).
            x = negatives(scores).logsumexp(dim=1) - scores.diagonal()
            weight = (gamma * F.logsigmoid(x)).exp()
            loss = loss + ((weight.detach() if detach else weight) * F.softplus(x, threshold=EXACT)).mean()
    return loss


class Focal(Tempered):
    """`focal`, in place of InfoNCE or beside it.

    Example:
        >>> import torch
        >>> Focal(0.5, gamma=0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.2211)
    """

    def __init__(
        self, tau: float = 0.07, *, gamma: float = 2.0, detach: bool = False, direction: Direction = "both"
    ) -> None:
        super().__init__(tau)
        check_number("gamma", gamma, least=0)
        check_choice("direction", direction, DIRECTIONS)
        self.gamma, self.detach, self.direction = gamma, detach, direction

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(focal(audio, text, self.gamma, self.tau, direction=self.direction, detach=self.detach))


CARD = LossCard(
    name="focal",
    make=Focal,
    title="Focal loss",
    about="InfoNCE with each pair weighted by a power of 1 − P⁺: pairs that fit already fade.",
    source="Lin et al. 2017, Eq. 4",
    citation="focal_loss",
)

"""Additive margin: InfoNCE whose positive must win by so much."""

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked


def additive_margin(
    audio: Tensor,
    text: Tensor,
    margin: float = 0.1,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
) -> Tensor:
    """InfoNCE with (cos − m)/τ for the score of the positive (AM-Softmax Eq. 6; CosFace Eq. 4); m = 0 is `info_nce`.

    m > 0 asks for more: a pair counts as if it were farther apart by m, so that it is still pulled when it fits.
    m < 0 lets pairs go that fit already; so does SVR, whose support vector raises ⟨t, a⁺⟩ by R·‖a⁺ − t⁺‖/2. Only the
    probabilities change: the gradient is that of InfoNCE at other P.

    Scale: each direction is a mean over N, and the two are summed. All N × N similarities are held at once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        margin: m, a finite number of either sign, in units of the cosine.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).

    Returns:
        0-d tensor, mean over N, float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, a margin that is not finite, a temperature that is not positive, an unknown
            direction.
        TypeError: embeddings that are not floating point.

    Example:
        >>> pairs = torch.eye(3)
        >>> [round(additive_margin(pairs, pairs, m, tau=0.5).item(), 4) for m in (-0.5, 0.0, 0.5)]
        [0.1898, 0.4791, 1.1029]
    """
    check_number("margin", margin)
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    with checked(audio=audio, text=text) as (a, t):
        logits = (t @ a.T - margin * torch.eye(len(t), dtype=t.dtype, device=t.device)) / tau  # texts in rows
        target = torch.arange(len(t), device=t.device)
        rows = {"t2a": [logits], "a2t": [logits.T], "both": [logits, logits.T]}[direction]
        return torch.stack([F.cross_entropy(scores, target) for scores in rows]).sum()


class AdditiveMargin(Tempered):
    """`additive_margin`, in place of InfoNCE or beside it.

    Example:
        >>> AdditiveMargin(0.5, margin=0.0)(torch.eye(3), torch.eye(3)).value
        tensor(0.4791)
    """

    def __init__(self, tau: float = 0.07, *, margin: float = 0.1, direction: Direction = "both") -> None:
        super().__init__(tau)
        check_number("margin", margin)
        check_choice("direction", direction, DIRECTIONS)
        self.margin, self.direction = margin, direction

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(additive_margin(audio, text, self.margin, self.tau, direction=self.direction))


CARD = LossCard(
    name="additive-margin",
    make=AdditiveMargin,
    title="Additive margin",
    about="InfoNCE whose positive must win by a margin; a negative one lets go of pairs that fit.",
    source="AM-Softmax Eq. 6; CosFace Eq. 4",
    citation="am_softmax",
)

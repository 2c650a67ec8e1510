"""Simple Reweight, SupCLAP's foil: InfoNCE with the positive's probability scaled by one number (Appendix E.4)."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked

Reweighting = Literal["gradient", "softmax"]


def simple_reweight(
    audio: Tensor,
    text: Tensor,
    weight: float | Tensor,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    form: Reweighting = "gradient",
) -> Tensor:
    """InfoNCE whose P⁺ is scaled by a scalar w (SupCLAP Appendix E.4); w = 1 is `info_nce` of that direction.

    −log(w P⁺) would leave every gradient as it was, so that the paper must mean something else; two readings:
    `"gradient"` scales P⁺ where it appears in the gradient (Eq. 4), whose pull becomes (w P⁺ − 1)·a⁺/τ while the push
    stays (w < 1 pulls harder). Its value is InfoNCE + (w − 1)·P⁺·s⁺ with P⁺ held constant. `"softmax"` scales the
    positive's exponential in Eq. 2, which adds log w to its logit (w > 1 pulls and pushes less; w must be positive).

    Scale: each direction is a mean over N, and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        weight: w, a number or a 0-d tensor that gradients reach.
        tau: temperature, a positive number or a 0-d tensor.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        form: `"gradient"` or `"softmax"`.

    Returns:
        0-d tensor, mean over N, float32 at least.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, a weight that is not finite, or not positive with
            "softmax", an unknown direction or form.
        TypeError: embeddings that are not floating point.

    Example:
        >>> pairs = torch.eye(3)
        >>> simple_reweight(pairs, pairs, weight=1.0, tau=0.5)  # InfoNCE
        tensor(0.4791)
    """
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    check_choice("form", form, get_args(Reweighting))
    check_number("weight", weight, above=0 if form == "softmax" else -math.inf)
    with checked(audio=audio, text=text) as (a, t):
        logits = t @ a.T / tau
        w = torch.as_tensor(weight, dtype=logits.dtype, device=logits.device)
        rows = {"t2a": [logits], "a2t": [logits.T], "both": [logits, logits.T]}[direction]
        loss = logits.new_zeros(())
        for scores in rows:
            positive = scores.diagonal()
            if form == "softmax":
                scores = scores + w.log() * torch.eye(len(scores), dtype=scores.dtype, device=scores.device)
            log_p = scores.diagonal() - scores.logsumexp(dim=1)
            extra = (w - 1) * log_p.detach().exp() * positive if form == "gradient" else 0.0
            loss = loss + (extra - log_p).mean()
    return loss


class SimpleReweight(Tempered):
    """`simple_reweight` with a learnable w, in place of InfoNCE (SupCLAP Table 7).

    w starts at 1, plain InfoNCE. Learning w is unstable by construction: both readings lower their loss without end
    by moving w alone, which is what the paper reports of it. With `form="softmax"` log w is what learns.

    Example:
        >>> SimpleReweight(0.5)(torch.eye(3), torch.eye(3)).value.item()  # doctest: +ELLIPSIS
        0.479...
    """

    def __init__(
        self,
        tau: float = 0.07,
        *,
        direction: Direction = "both",
        form: Reweighting = "gradient",
        weight: float = 1.0,
    ) -> None:
        super().__init__(tau)
        check_choice("direction", direction, DIRECTIONS)
        check_choice("form", form, get_args(Reweighting))
        check_number("weight", weight, above=0 if form == "softmax" else -math.inf)
        self.direction, self.form = direction, form
        self.raw = nn.Parameter(torch.tensor(math.log(weight) if form == "softmax" else float(weight)))

    @property
    def weight(self) -> Tensor:
        """w in use, 0-d."""
        return self.raw.exp() if self.form == "softmax" else self.raw

    @property
    def learnt(self) -> dict[str, Tensor]:
        """`weight`."""
        return {"weight": self.weight.detach()}

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(simple_reweight(audio, text, self.weight, self.tau, direction=self.direction, form=self.form))


CARD = LossCard(
    name="simple-reweight",
    make=SimpleReweight,
    title="Simple Reweight",
    about="InfoNCE with the positive's probability scaled by one learnable number: SupCLAP's foil.",
    source="SupCLAP Appendix E.4, Table 7",
    citation="supclap",
    colour="black",
)

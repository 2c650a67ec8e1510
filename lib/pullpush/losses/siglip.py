"""The pairwise sigmoid loss (SigLIP; GLAP Eq. 1–2)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.losses._checks import check_pair, check_temperature
from pullpush.losses.temperature import Tempered

Form = Literal["glap", "siglip"]
FORMS = ("glap", "siglip")


def siglip(audio: Tensor, text: Tensor, tau: float | Tensor, bias: float | Tensor, form: Form = "glap") -> Tensor:
    """Sigmoid loss: every pair of the N × N is a binary decision; summed over pairs and divided by N.

    Two readings of the bias: `form="glap"` is GLAP's printed Eq. 2, (s + bias)/τ; `form="siglip"` is s/τ + bias,
    as in SigLIP and in GLAP's published code. They are the same family: bias_siglip = bias_glap/τ. With the
    printed initial values τ = 0.07 and bias = −10 the first form starts at logits near −143.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        tau: temperature, a positive number or a 0-d tensor.
        bias: the bias β, a number or a 0-d tensor.
        form: `"glap"` or `"siglip"`, see above.

    Returns:
        0-d tensor in the dtype of the embeddings.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown form.
    """
    check_pair(audio, text)
    check_temperature(tau)
    if form not in FORMS:
        raise ValueError(f"form must be one of {FORMS}, got {form!r}")
    similarity = text @ audio.T
    logits = (similarity + bias) / tau if form == "glap" else similarity / tau + bias  # Eq. 2
    psi = 2 * torch.eye(len(text), dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(logits * psi).sum() / len(text)  # Eq. 1


class SigLIP(Tempered):
    """Sigmoid loss with fixed or learnable temperature and bias.

    Default: SigLIP's published start, 1/τ = 10 and bias −10 in the form s/τ + bias. It was made for batches of
    thousands: the bias at which a batch of N with equal similarities pulls as much as it pushes is near −log(N − 1).
    """

    def __init__(
        self,
        tau: float = 0.1,
        bias: float = -10.0,
        *,
        form: Form = "siglip",
        learnable: bool = True,
        max_scale: float = 100.0,
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale)
        if learnable:
            self.bias = nn.Parameter(torch.tensor(float(bias)))
        else:
            self.register_buffer("bias", torch.tensor(float(bias)))
        self.form = form

    def report(self) -> dict[str, Tensor]:
        """`bias` before the step, 0-d."""
        return {"bias": self.bias.detach()}

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` → 0-d loss."""
        return siglip(audio, text, self.tau, self.bias.to(audio.dtype), self.form)

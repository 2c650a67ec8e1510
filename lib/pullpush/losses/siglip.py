"""The pairwise sigmoid loss (SigLIP; GLAP Eq. 1–2)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.losses._checks import check_pair, check_temperature

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


class SigLIP(nn.Module):
    """Sigmoid loss with fixed or learnable temperature and bias.

    Default: SigLIP's published start, 1/τ = 10 and bias −10 in the form s/τ + bias. The learnable temperature
    is kept as log(1/τ) with 1/τ clamped to `max_scale`.
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
        super().__init__()
        check_temperature(tau)
        values = {"log_scale": torch.tensor(math.log(1 / tau)), "bias": torch.tensor(float(bias))}
        for name, value in values.items():
            if learnable:
                self.register_parameter(name, nn.Parameter(value))
            else:
                self.register_buffer(name, value)
        self.max_log_scale = max(math.log(max_scale), math.log(1 / tau))
        self.form = form

    @property
    def tau(self) -> Tensor:
        """The temperature in use, 0-d."""
        return torch.exp(-self.log_scale.clamp(max=self.max_log_scale))

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` → 0-d loss."""
        dtype = audio.dtype
        return siglip(audio, text, self.tau.to(dtype), self.bias.to(dtype), self.form)

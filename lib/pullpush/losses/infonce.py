"""InfoNCE, the softmax contrastive loss (SupCLAP Eq. 1 and 5; ML-CLAP; CLIP)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses._checks import check_pair, check_temperature
from pullpush.losses.temperature import Tempered

Direction = Literal["t2a", "a2t", "both"]
DIRECTIONS = ("t2a", "a2t", "both")


def info_nce(audio: Tensor, text: Tensor, tau: float | Tensor = 0.07, direction: Direction = "both") -> Tensor:
    """InfoNCE over the batch; row i of `audio` and row i of `text` are the positive pair.

    `"t2a"` is SupCLAP Eq. 1 with each text as anchor and all N audios as candidates, averaged over N;
    `"a2t"` exchanges the roles; `"both"` is their **sum** (Eq. 5; CLIP and ML-CLAP halve it).

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"`.

    Returns:
        0-d tensor in the dtype of the embeddings. Zero for N = 1: there is nothing to push away from.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown direction.
    """
    check_pair(audio, text)
    check_temperature(tau)
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {DIRECTIONS}, got {direction!r}")
    logits = text @ audio.T / tau  # (N, N): texts in rows, s(t_i, a_j)
    target = torch.arange(len(text), device=text.device)
    loss = logits.new_zeros(())
    if direction in ("t2a", "both"):
        loss = loss + F.cross_entropy(logits, target)
    if direction in ("a2t", "both"):
        loss = loss + F.cross_entropy(logits.T, target)
    return loss


class InfoNCE(Tempered):
    """InfoNCE with a fixed or learnable temperature (see `Temperature`)."""

    def __init__(
        self,
        tau: float = 0.07,
        *,
        learnable: bool = False,
        max_scale: float = 100.0,
        direction: Direction = "both",
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale)
        self.direction = direction

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` → 0-d loss."""
        return info_nce(audio, text, self.tau, self.direction)

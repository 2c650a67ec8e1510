"""Self-attention of the encoders that are trained from scratch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def transformer_layers(width: int, layers: int, heads: int, dropout: float) -> nn.TransformerEncoder:
    """Pre-norm transformer layers on `(B, S, width)` with a final layer norm; a true `src_key_padding_mask` hides.

    >>> transformer_layers(8, 2, 2, 0.0)(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """
    if width % heads or width % 2:
        raise ValueError(f"width must be even and divisible by heads, got width={width}, heads={heads}")
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)


def sinusoids(positions: int, width: int, device: torch.device) -> Tensor:
    """`(positions, width)` sines and cosines of wavelengths 2π … 2π · 10⁴: any length, nothing learned.

    >>> sinusoids(2, 4, torch.device("cpu"))[0]
    tensor([0., 0., 1., 1.])
    """
    rate = torch.exp(torch.linspace(0, -math.log(1e4), width // 2, device=device))
    angle = torch.arange(positions, device=device)[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=1)

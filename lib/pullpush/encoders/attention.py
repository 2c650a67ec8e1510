"""Self-attention: of the encoders that are trained from scratch, and of a vision transformer with masks for clips.

The modules of the latter (Dosovitskiy et al. 2021), which published audio encoders share, are named as in timm, whose
names CED, Dasheng and PaSST keep: `blocks.0.attn.qkv.weight` and so on.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.errors import WeightsError


def transformer_layers(width: int, layers: int, heads: int, dropout: float) -> nn.TransformerEncoder:
    """Pre-norm transformer layers on `(B, S, width)` with a final layer norm; a true `src_key_padding_mask` hides."""
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


EPSILON = 1e-6  # of the layer norms


class Size(NamedTuple):
    """How big a vision transformer is; it stands for a model with random weights."""

    width: int
    depth: int
    heads: int


class Attention(nn.Module):
    """Self-attention, `(B, S, width)`, with one matrix for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be divisible by heads, got width={width}, heads={heads}")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """mask: `(B, S)` bool, true for the places that may be looked at."""
        batch, places, width = x.shape
        q, k, v = self.qkv(x).view(batch, places, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = attend(q, k, v, mask[:, None, None])
        return self.proj(x.transpose(1, 2).reshape(batch, places, width))


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention of `(B, heads, S, width)`; on a CPU in single precision, which is twice as fast there as half."""
    if q.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)


class Block(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.attn = Attention(width, heads)
        layers = {"fc1": nn.Linear(width, 4 * width), "gelu": nn.GELU(), "fc2": nn.Linear(4 * width, width)}
        self.mlp = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


def size_of(tensors: Mapping[str, Tensor], heads: Mapping[int, int], model: str) -> Size:
    """The size of a published network: its tensors, and heads by width; WeightsError where it is no such network."""
    if "norm.weight" not in tensors:
        raise WeightsError(f"the weights of {model} are of another network: they have no tensor norm.weight")
    width = len(tensors["norm.weight"])
    depth = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    return Size(width, depth, heads.get(width, max(1, width // 64)))

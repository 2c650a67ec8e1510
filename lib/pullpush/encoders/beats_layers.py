"""BEATs' transformer layer: post-norm with a strong residual, attention with gated relative positions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, kw_only=True)
class BEATsSize:
    """How big a BEATs is; the defaults are those of the published ones. It stands for a model with random weights.

    width, depth, heads, hidden: of the transformer; patch_width: size of a patch before it; patch: bands and frames of
    a patch; conv_positions, conv_groups: kernel and groups of the convolution that tells positions; buckets, furthest:
    of relative positions.
    """

    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    patch_width: int = 512
    patch: int = 16
    conv_positions: int = 128
    conv_groups: int = 16
    buckets: int = 320
    furthest: int = 800

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width must be divisible by heads, got width={self.width}, heads={self.heads}")
        if self.width % self.conv_groups:
            object.__setattr__(self, "conv_groups", math.gcd(self.width, self.conv_groups))


class GatedAttention(nn.Module):
    """Self-attention whose bias of relative positions is gated by each place's query (Chi et al. 2022, XLM-E)."""

    def __init__(self, size: BEATsSize) -> None:
        super().__init__()
        self.heads = size.heads
        self.q_proj, self.k_proj = nn.Linear(size.width, size.width), nn.Linear(size.width, size.width)
        self.v_proj, self.out_proj = nn.Linear(size.width, size.width), nn.Linear(size.width, size.width)
        self.grep_linear = nn.Linear(size.width // size.heads, 8)
        self.grep_a = nn.Parameter(torch.ones(1, size.heads, 1, 1))

    def forward(self, x: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        """`(B, S, width)`; bias `(heads, S, S)`; mask `(B, S)` bool, true for the places that may be looked at."""
        q, k, v = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        update, reset = torch.sigmoid(self.grep_linear(q).unflatten(-1, (2, 4)).sum(-1)).chunk(2, dim=-1)
        gate = update * (reset * self.grep_a - 1) + 2  # (B, heads, S, 1)
        weights = (gate * bias).masked_fill(~mask[:, None, None], -torch.inf)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=weights.to(q.dtype))
        return self.out_proj(x.transpose(1, 2).flatten(2))


class BEATsLayer(nn.Module):
    """One layer. DeepNorm: the residual is scaled by (2 · depth)^(1/4) before each norm (Wang et al. 2022).

    >>> size = BEATsSize(width=8, depth=2, heads=2, hidden=16)
    >>> BEATsLayer(size)(torch.zeros(1, 3, 8), torch.zeros(2, 3, 3), torch.ones(1, 3, dtype=torch.bool)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, size: BEATsSize) -> None:
        super().__init__()
        self.residual = (2 * size.depth) ** 0.25
        self.self_attn = GatedAttention(size)
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.fc1, self.fc2 = nn.Linear(size.width, size.hidden), nn.Linear(size.hidden, size.width)

    def forward(self, x: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        x = self.self_attn_layer_norm(x * self.residual + self.self_attn(x, bias, mask))
        return self.final_layer_norm(x * self.residual + self.fc2(F.gelu(self.fc1(x))))


def relative_buckets(places: int, buckets: int, furthest: int, device: torch.device) -> Tensor:
    """The bucket of each distance from a place (row) to another (column), `(places, places)` int64.

    Half of the buckets for places before and half for those after; half of these for the nearest distances, one each,
    the rest for distances that grow geometrically up to `furthest` (Raffel et al. 2020, T5).

    >>> relative_buckets(3, 8, 16, torch.device("cpu")).tolist()
    [[0, 5, 6], [1, 0, 5], [2, 1, 0]]
    """
    place = torch.arange(places, device=device)
    distance = place[None] - place[:, None]
    half = buckets // 2
    exact = half // 2
    near = distance.abs()
    scale = (half - exact) / math.log(furthest / exact)
    far = exact + (torch.log(near.clamp(min=1).float() / exact) * scale).long()
    return torch.where(near < exact, near, far.clamp(max=half - 1)) + (distance > 0) * half

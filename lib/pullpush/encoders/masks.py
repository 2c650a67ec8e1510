"""Masks that keep padding out of features."""

from __future__ import annotations

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """`(B,)` int64 lengths → `(B, size)` bool, true on the first `lengths[i]` places of row i.

    >>> length_mask(torch.tensor([1, 2]), 2)
    tensor([[ True, False],
            [ True,  True]])
    """
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def zero_padding(audio: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Set `(B, T)` samples beyond their clip's length to zero; no lengths means that every clip fills its row.

    Returns:
        `(B, T)` audio and `(B,)` int64 lengths on the same device.

    >>> zero_padding(torch.ones(1, 3), torch.tensor([2]))
    (tensor([[1., 1., 0.]]), tensor([2]))
    """
    if lengths is None:
        return audio, torch.full((len(audio),), audio.shape[1], dtype=torch.int64, device=audio.device)
    lengths = lengths.to(audio.device, torch.int64)
    return audio.masked_fill(~length_mask(lengths, audio.shape[1]), 0.0), lengths


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`.

    >>> masked_mean(torch.tensor([[[1.0, 3.0, 8.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    weight = mask[:, None].to(x.dtype)
    return (x * weight).sum(-1) / weight.sum(-1).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Maximum over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`.

    >>> masked_max(torch.tensor([[[1.0, 3.0, 8.0]]]), torch.tensor([[True, True, False]]))
    tensor([[3.]])
    """
    return x.masked_fill(~mask[:, None], -torch.inf).amax(-1)

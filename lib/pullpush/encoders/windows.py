"""Clips that are longer than an encoder's window: heard as windows that lie evenly over them, and averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.encoders.masks import zero_padding


class Windows(NamedTuple):
    """Stretches of clips. audio: `(M, W)`; lengths: `(M,)` int64 samples in each; clip: `(M,)` int64, whose it is."""

    audio: Tensor
    lengths: Tensor
    clip: Tensor


def windows(audio: Tensor, lengths: Tensor | None, longest: int) -> Windows:
    """Cut clips of more than `longest` samples into the fewest windows of that length which cover them.

    The windows of a clip lie evenly: two that overlap for a little more than one length, side by side for two. All are
    full, so that an encoder with a window of fixed length never hears a rest that is filled up with silence.

    >>> cut = windows(torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]), torch.tensor([3, 1]), longest=2)
    >>> cut.audio.tolist(), cut.lengths.tolist(), cut.clip.tolist()
    ([[1.0, 2.0], [2.0, 3.0], [4.0, 0.0]], [2, 2, 1], [0, 0, 1])
    """
    if longest < 1:
        raise ValueError(f"a window needs at least one sample, got {longest}")
    audio, lengths = zero_padding(audio, lengths)
    width = min(longest, audio.shape[1])
    rows, starts = [], []
    for row, length in enumerate(lengths.tolist()):
        count = max(1, -(-length // longest))
        starts += torch.linspace(0, max(0, length - longest), count, dtype=torch.float64).round().long().tolist()
        rows += [row] * count
    clip = torch.tensor(rows, device=audio.device)
    cut = torch.stack([audio[row, start : start + width] for row, start in zip(rows, starts, strict=True)])
    return Windows(cut, lengths[clip].clamp(max=longest), clip)


def over_windows(
    encode: Callable[[Tensor, Tensor], Tensor], audio: Tensor, lengths: Tensor | None, longest: int
) -> Tensor:
    """Features of clips of any length by an encoder of windows: of each clip the mean over its windows.

    Args:
        encode: `(M, W)` windows and `(M,)` samples in each → `(M, dim)`.
        audio: `(B, T)`.
        lengths: `(B,)` samples in each clip; None for all T.
        longest: samples in a window.

    Returns:
        `(B, dim)`.

    >>> over_windows(lambda windows, lengths: windows.sum(1, keepdim=True), torch.ones(1, 6), None, longest=4)
    tensor([[4.]])
    """
    cut = windows(audio, lengths, longest)
    features = encode(cut.audio, cut.lengths)
    clip = cut.clip.to(features.device)
    total = features.new_zeros(len(audio), features.shape[1]).index_add(0, clip, features)
    return total / clip.bincount(minlength=len(audio))[:, None]

"""Checks at the door of every loss: wrong shapes and values get a message that names the argument."""

from __future__ import annotations

import torch
from torch import Tensor


def check_pair(audio: Tensor, text: Tensor) -> None:
    """Require `audio` and `text` to be matching `(N, d)` floating-point embeddings with N ≥ 1.

    Raises:
        ValueError: naming the shape that came and the one expected.
        TypeError: for tensors that are not floating point.
    """
    for name, value in (("audio", audio), ("text", text)):
        if not torch.is_tensor(value) or not value.is_floating_point():
            kind = value.dtype if torch.is_tensor(value) else type(value).__name__
            raise TypeError(f"{name} must be a floating-point tensor of shape (N, d), got {kind}")
        if value.ndim != 2 or value.shape[0] == 0:
            raise ValueError(f"{name} must have shape (N, d) with N ≥ 1, got {tuple(value.shape)}")
    if audio.shape != text.shape:
        raise ValueError(
            f"audio {tuple(audio.shape)} and text {tuple(text.shape)} must have one shape: row i of each is a pair"
        )


def check_temperature(tau: float | Tensor) -> None:
    """Require a positive temperature (a Python number; a learnable tensor is clamped by its module)."""
    if not torch.is_tensor(tau) and not tau > 0:
        raise ValueError(f"tau must be positive, got {tau}")

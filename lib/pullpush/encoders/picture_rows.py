"""Pictures as encoders take them: clips hold a row of numbers each, a picture is a square of three channels."""

from __future__ import annotations

from torch import Tensor

from pullpush.errors import AudioError


def as_images(rows: Tensor) -> Tensor:
    """`(B, 3 S²)`, red, green and blue one after the other, → `(B, 3, S, S)`.

    >>> import torch
    >>> as_images(torch.zeros(2, 12)).shape
    torch.Size([2, 3, 2, 2])

    Raises:
        AudioError: a row is no square of three channels, such as that of a waveform.
    """
    side = round((rows.shape[1] / 3) ** 0.5)
    if 3 * side * side != rows.shape[1]:
        raise AudioError(f"expected pictures as 3 S² pixels in a row, got {rows.shape[1]} numbers")
    return rows.view(-1, 3, side, side)

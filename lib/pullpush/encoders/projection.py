"""From an encoder's features to the joint space."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SMALLEST_NORM = 1e-6  # below it a vector is divided by this instead, so that zero stays zero with finite gradient


def normalise(x: Tensor) -> Tensor:
    """L2-normalise the last axis of `(…, d)`; computed in at least float32; the zero vector stays zero.

    >>> normalise(torch.tensor([3.0, 4.0]))
    tensor([0.6000, 0.8000])
    """
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=SMALLEST_NORM)


class Projection(nn.Module):
    """Linear–ReLU–Linear, then L2 normalisation.

    Args:
        inputs: size of the encoder's features.
        outputs: d, dimensions of the joint space.
        hidden: size between the two layers; None means `outputs`.

    >>> Projection(4, 2)(torch.ones(3, 4)).norm(dim=1)
    tensor([1., 1., 1.], grad_fn=...)
    """

    def __init__(self, inputs: int, outputs: int = 256, hidden: int | None = None) -> None:
        super().__init__()
        hidden = outputs if hidden is None else hidden
        if min(inputs, outputs, hidden) < 1:
            raise ValueError(f"sizes must be at least 1, got inputs={inputs}, outputs={outputs}, hidden={hidden}")
        self.layers = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))

    def forward(self, features: Tensor) -> Tensor:
        """`(B, inputs)` → `(B, outputs)` of unit length."""
        return normalise(self.layers(features))

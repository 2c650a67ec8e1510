"""What the terms of lesson 6 do to the texts of a batch: along the way to their clips, across it, topic by topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import tangent


def force_parts(
    terms: Mapping[str, Callable[[Tensor, Tensor], Tensor]], audio: Tensor, text: Tensor, topics: Tensor
) -> pd.DataFrame:
    """Where each term takes the texts of one batch: a row a term, of what descent asks of N·loss on the sphere.

    Args:
        terms: name → loss of (audio, text), a mean over the batch.
        audio, text: `(N, d)` unit vectors.
        topics: `(N,)`, of the captions.

    Returns:
        Columns term; along, towards the text's own clip on the great circle (mean), across, the length of the rest
        (mean); and alike, the cosine of a text's force with the mean force on the other texts of its topic.
    """
    rows = []
    for name, loss in terms.items():
        leaf = text.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(len(text) * loss(audio.detach(), leaf), leaf)
        force = tangent(-gradient, text)
        towards = F.normalize(tangent(audio - text, text), dim=1)
        along = (force * towards).sum(dim=1)
        across = (force - along[:, None] * towards).norm(dim=1)
        rows.append((name, float(along.mean()), float(across.mean()), _alike(force, topics)))
    return pd.DataFrame(rows, columns=["term", "along", "across", "alike"])


def _alike(force: Tensor, topics: Tensor) -> float:
    """The mean cosine of each force with the mean of the others in its topic, where there are others."""
    same = (topics[:, None] == topics).to(force.dtype).fill_diagonal_(0)
    has = same.sum(dim=1) > 0
    return float(F.cosine_similarity((same @ force)[has], force[has]).mean())


def fitted_heads(heads: Any, audio: Tensor, text: Tensor, topics: Tensor, *, steps: int = 200) -> Any:
    """Heads that have learnt to name the topics of embeddings that stand still, by Adam; they are returned."""
    optimiser = torch.optim.Adam(heads.parameters(), lr=3e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        heads(audio, text, topics).value.backward()
        optimiser.step()
    return heads

"""One caption and the forces on it, in a plane that can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import decompose


class Plane(NamedTuple):
    """One anchor's forces as `figures.force_plane` draws them; see there."""

    negatives: list[np.ndarray]
    partner: np.ndarray
    pushes: list[np.ndarray]


def project(text: Tensor, audio: Tensor, anchor: int, groups: Sequence[Sequence[int]], tau: float) -> Plane:
    """SupCLAP Figure 2 from real embeddings: the plane of û and of the direction in which the groups' pushes lie most.

    Args:
        text, audio: `(N, d)` each.
        anchor: row of the text that is looked at.
        groups: rows of audio that are its negatives: all others, or those of several mini-batches.
        tau: temperature.
    """
    caption, partner = text[anchor], audio[anchor]
    unit = F.normalize(partner - caption, dim=0)
    forces = [
        decompose(caption[None], torch.cat([partner[None], audio[list(rows)]]), tau, positive=torch.tensor([0]))
        for rows in groups
    ]
    off_line = torch.cat([force.perpendicular for force in forces])
    centred = off_line - off_line.mean(0) if len(groups) > 1 else off_line
    across = F.normalize(torch.linalg.svd(centred, full_matrices=False).Vh[0], dim=0)
    axes = torch.stack([unit, across])
    points, pushes = [], []
    for rows, force in zip(groups, forces, strict=True):
        negative = audio[list(rows)]
        scores = torch.cat([partner[None], negative]) @ caption / tau
        place = (negative - caption) @ axes.T
        points.append(torch.cat([place, scores.softmax(0)[1:, None]], dim=1).numpy())
        pushes.append((axes @ -force.push[0]).numpy())
    return Plane(points, (axes @ (partner - caption)).numpy(), pushes)

"""The measurements of the chapters on forces: equations against autograd, parts by setting, batch against whole set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import decompose, distance_change, local_global
from pullpush.losses import info_nce
from pullpush.training.diagnostics import force_norms


def equation_errors(text: Tensor, audio: Tensor, tau: float) -> pd.DataFrame:
    """SupCLAP Eq. 1–4 and 12 on given embeddings, `(N, d)` each, against autograd: largest absolute errors in float64.

    Columns: equation, statement, error, scale (the largest absolute value of what is compared).
    """
    anchor, audio = text.double().detach().requires_grad_(), audio.double().detach()
    # Autograd on the batch mean, so times N: the forces are those of one sample's loss.
    (gradient,) = torch.autograd.grad(info_nce(audio, anchor, tau, direction="t2a") * len(anchor), anchor)
    anchor = anchor.detach()
    forces = decompose(anchor, audio, tau)
    step = -0.01 * gradient
    change = distance_change(anchor, audio, -step).total
    moved = (anchor + step - audio).square().sum(1) - (anchor - audio).square().sum(1)
    along = (forces.perpendicular * forces.unit).sum(1)
    rows = [
        ("Eq. 1–4", "∇L = F_pull + F_push", forces.gradient, gradient),
        ("§2", "F_push = F_∥ + F_⊥", forces.parallel + forces.perpendicular, forces.push),
        ("§2", "F_⊥ · û = 0", along, torch.zeros_like(along)),
        ("Eq. 12", "Δ‖t⁺ − a⁺‖² = ideal + noise penalty", change, moved),
    ]
    columns = ["equation", "statement", "error", "scale"]
    return pd.DataFrame(
        [(e, s, (ours - truth).abs().max().item(), ours.abs().max().item()) for e, s, ours, truth in rows],
        columns=columns,
    )


def parts(text: Tensor, audio: Tensor, tau: float, batch_size: int, *, batches: int = 40, seed: int = 0) -> pd.Series:
    """Means of the forces over random batches of given embeddings, `(N, d)` each; see `diagnostics.force_norms`.

    Adds perpendicular_over_pull and sideways_over_pull, the ratios of the mean norms.
    """
    generator = torch.Generator().manual_seed(seed)
    size = min(batch_size, len(text))
    draws = [torch.randperm(len(text), generator=generator)[:size] for _ in range(batches)]
    row = pd.DataFrame([force_norms(text[rows], audio[rows], tau) for rows in draws]).mean()
    row["perpendicular_over_pull"] = row["perpendicular"] / row["pull"]
    row["sideways_over_pull"] = row["sideways"] / row["pull"]
    return row


def parts_by_setting(
    models: Mapping[tuple[str, int], tuple[Tensor, Tensor]],
    *,
    tau: float,
    batch_size: int,
    taus: Sequence[float] = (0.02, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0),
    batch_sizes: Sequence[int] = (4, 8, 24, 64, 128, 256, 512),
) -> pd.DataFrame:
    """`parts` over temperatures (at `batch_size`) and over batch sizes (at `tau`), for each set of embeddings.

    Args:
        models: (name, seed) → text and audio embeddings, `(N, d)` each.

    Returns:
        Columns model, seed, setting ("temperature" or "batch size"), value, and those of `parts`.
    """
    rows = []
    for (name, seed), (text, audio) in models.items():
        points = [("temperature", value, value, batch_size) for value in taus]
        points += [("batch size", size, tau, size) for size in batch_sizes if size <= len(text)]
        for setting, value, temperature, size in points:
            measured = parts(text, audio, temperature, size, seed=seed)
            rows.append({"model": name, "seed": seed, "setting": setting, "value": value, **measured})
    return pd.DataFrame(rows)


def batch_against_whole(
    text: Tensor, audio: Tensor, tau: float, *, batch_sizes: Sequence[int] = (8, 24, 64, 128, 256, 512, 1024)
) -> pd.DataFrame:
    """The perpendicular force of mini-batches against that of all N pairs, over batch size; see `forces.local_global`.

    Columns: batch_size, and the means over anchors of whole, batch, variance, cosine.
    """
    rows = []
    for size in (size for size in batch_sizes if size <= len(text) // 2):
        epochs = 32 if 8 * size > len(text) else 8  # large batches are few, and leave many anchors out
        measured = local_global(text, audio, tau, batch_size=size, epochs=epochs)
        rows.append({"batch_size": size, **{name: value.mean().item() for name, value in measured._asdict().items()}})
    return pd.DataFrame(rows)


class Plane(NamedTuple):
    """One anchor's forces as `plots.force_plane` draws them; see there."""

    negatives: list[np.ndarray]
    partner: np.ndarray
    pushes: list[np.ndarray]


def plane(text: Tensor, audio: Tensor, anchor: int, groups: Sequence[Sequence[int]], tau: float) -> Plane:
    """Figure 2 from real embeddings: the plane of û and of the direction in which the groups' pushes lie most.

    Args:
        text, audio: `(N, d)` each.
        anchor: row of the text that is looked at.
        groups: rows of audio that are its negatives: all others, or those of several mini-batches.
        tau: temperature.
    """
    here, partner = text[anchor], audio[anchor]
    unit = F.normalize(partner - here, dim=0)
    forces = [
        decompose(here[None], torch.cat([partner[None], audio[list(rows)]]), tau, positive=torch.tensor([0]))
        for rows in groups
    ]
    sideways = torch.cat([force.perpendicular for force in forces])
    centred = sideways - sideways.mean(0) if len(groups) > 1 else sideways
    across = F.normalize(torch.linalg.svd(centred, full_matrices=False).Vh[0], dim=0)
    axes = torch.stack([unit, across])
    points, pushes = [], []
    for rows, force in zip(groups, forces, strict=True):
        negative = audio[list(rows)]
        weight = torch.cat([partner[None], negative]) @ here / tau
        place = (negative - here) @ axes.T
        points.append(torch.cat([place, weight.softmax(0)[1:, None]], dim=1).numpy())
        pushes.append((axes @ -force.push[0]).numpy())
    return Plane(points, (axes @ (partner - here)).numpy(), pushes)

"""SupCLAP's equations on given embeddings against autograd."""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor

from pullpush.forces import decompose, distance_change
from pullpush.losses import info_nce
from pullpush.metrics import Difference
from pullpush.studies.means import by_clip


def equation_errors(text: Tensor, audio: Tensor, tau: float) -> pd.DataFrame:
    """SupCLAP Eq. 1–4 and 12 on given embeddings, `(N, d)` each, against autograd: largest absolute errors in float64.

    Columns: equation, statement, error, scale (the largest absolute value of what is compared).
    """
    anchor, audio, gradient = _by_autograd(text, audio, tau)
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


def gradient_errors(text: Tensor, audio: Tensor, tau: float) -> Difference:
    """‖F_pull + F_push − ∇L‖ / ‖∇L‖ of each caption of one batch, `(N, d)` each, ∇L by autograd in float64."""
    anchor, audio, gradient = _by_autograd(text, audio, tau)
    missed = (decompose(anchor, audio, tau).gradient - gradient).norm(dim=1)
    return by_clip(missed / gradient.norm(dim=1))


def _by_autograd(text: Tensor, audio: Tensor, tau: float) -> tuple[Tensor, Tensor, Tensor]:
    """Text and audio in float64, and the gradient of each caption's own loss."""
    anchor, audio = text.double().detach().requires_grad_(), audio.double().detach()
    # Autograd on the batch mean, so times N: the forces are those of one sample's loss.
    (gradient,) = torch.autograd.grad(info_nce(audio, anchor, tau, direction="t2a") * len(anchor), anchor)
    return anchor.detach(), audio, gradient

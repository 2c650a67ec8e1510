"""What a radius, or a weight, changes in the step that a loss asks of an anchor.

Everywhere `anchor` are texts and `positive` their sounds, `(N, d)` unit vectors each, and a loss is a function of
(audio, text) that gives the mean over a batch. Rows that do not fill the last batch are left out; a batch larger than
the set is the set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import step_parts, tangent
from pullpush.losses import info_nce, simple_reweight, support_vector, svr
from pullpush.parallel import one_thread
from pullpush.studies.svr.proof import probabilities

Loss = Callable[[Tensor, Tensor], Tensor]


def parts_by_loss(anchor: Tensor, positive: Tensor, losses: Mapping[str, Loss], *, batch_size: int) -> pd.DataFrame:
    """Means over the anchors of what `forces.step_parts` says of several losses.

    Returns:
        Columns loss, parallel and perpendicular (mean norms), drift (mean cosine with the geodesic direction).
    """
    rows, size = [], min(batch_size, len(anchor))
    for name, loss in losses.items():
        with one_thread():
            found = step_parts(loss, anchor, positive, batch_size=size)
            means = torch.stack([found.parallel.abs(), found.perpendicular, found.cosine], dim=1).mean(0)
        rows.append((name, *means.tolist()))
    return pd.DataFrame(rows, columns=["loss", "parallel", "perpendicular", "drift"])


def text_losses(tau: float, radius: float, weights: Sequence[tuple[Any, float]]) -> dict[str, Loss]:
    """The text-to-audio halves of InfoNCE, of it with SVR at a radius, and of Simple Reweight, (form, w) each."""
    table: dict[str, Loss] = {
        "InfoNCE": lambda a, t: info_nce(a, t, tau, direction="t2a"),
        "InfoNCE twice": lambda a, t: 2 * info_nce(a, t, tau, direction="t2a"),
        f"InfoNCE + SVR, R = {radius:.2f}": lambda a, t: info_nce(a, t, tau, direction="t2a") + svr(a, t, radius, tau),
    }
    for form, weight in weights:
        table[f"Simple Reweight ({form}), w = {weight:.2f}"] = lambda a, t, form=form, w=weight: simple_reweight(
            a, t, w, tau, direction="t2a", form=form
        )
    return table


def reweighted_parallel(anchor: Tensor, positive: Tensor, tau: float, weight: float, *, batch_size: int) -> float:
    """What Simple Reweight (gradient) adds to the parallel part of InfoNCE's step, as a fraction."""
    losses = {
        "reweight": lambda a, t: simple_reweight(a, t, weight, tau, direction="t2a"),
        "infonce": lambda a, t: info_nce(a, t, tau, direction="t2a"),
    }
    reweighted, plain = parts_by_loss(anchor, positive, losses, batch_size=batch_size)["parallel"]
    return reweighted / plain - 1


def radius_effects(
    anchor: Tensor, positive: Tensor, tau: float, radii: Sequence[float], *, batch_size: int
) -> pd.DataFrame:
    """All that a radius changes in the SVR term alone (cosine, text-to-audio).

    Columns: radius; 1 − P_sup, the weight that the negatives are left with; parallel and perpendicular, mean norms of
    −∇_t along the geodesic direction and across it; across/along, their ratio; through t_sup, the share of the gradient
    on the sounds that reaches a⁺ through the support vector.
    """
    losses = {radius: lambda a, t, radius=radius: svr(a, t, radius, tau) for radius in radii}
    parts = parts_by_loss(anchor, positive, losses, batch_size=batch_size)  # pyrefly: ignore[bad-argument-type]
    parts = parts.drop(columns="drift").rename(columns={"loss": "radius"})
    parts["across/along"] = parts["perpendicular"] / parts["parallel"]
    size = min(batch_size, len(anchor))
    batches = [slice(start, start + size) for start in range(0, len(anchor) - size + 1, size)]
    found = np.array([[_weight_and_share(anchor[b], positive[b], radius, tau) for b in batches] for radius in radii])
    weight, share = found.mean(axis=1).T
    parts.insert(1, "1 − P_sup", weight)
    return parts.assign(**{"through t_sup": share})


def _weight_and_share(anchor: Tensor, positive: Tensor, radius: float, tau: float) -> tuple[float, float]:
    """1 − P_sup, and how much of the sounds' gradient goes through the support vector, of one batch."""
    candidates, partners = (positive.clone().requires_grad_() for _ in range(2))
    moved = F.normalize(support_vector(anchor, partners, radius), dim=1)
    loss = F.cross_entropy(moved @ candidates.T / tau, torch.arange(len(anchor)))
    direct, through = torch.autograd.grad(loss, (candidates, partners))
    direct, through = (tangent(gradient, positive).norm() for gradient in (direct, through))
    weight = 1 - probabilities(anchor, positive, radius, tau, similarity="cosine").diagonal().mean()
    return weight.item(), (through / (direct + through)).item()

"""The proof of what SVR does to a push (SupCLAP Eq. 13–18), against autograd.

Everywhere `anchor` are the texts t⁺ and `positive` their sounds a⁺, `(N, d)` each: row i belongs to row i, and the
other rows of `positive` are its negatives. The forces on sounds are had by exchanging the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import tangent
from pullpush.losses import support_vector, svr


def proof_errors(anchor: Tensor, positive: Tensor, radius: float, tau: float, alpha: float = 1.0) -> pd.DataFrame:
    """SupCLAP Eq. 13–18 for the dot product on given embeddings, `(N, d)` each, against autograd in float64.

    Args:
        anchor, positive: see above.
        radius: R, one for all anchors.
        tau: temperature.
        alpha: weight of L_svr beside InfoNCE in Eq. 17 and 18.

    Returns:
        Columns equation, statement, error (largest absolute), scale (largest absolute value of what is compared).
    """
    text, audio = anchor.double(), positive.double()
    unit = F.normalize(audio - text, dim=1)
    factor = 1 - radius / (audio - text).norm(dim=1)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda t, a: _moved(t, a, radius)))(text, audio)
    outer, eye = unit[:, :, None] * unit[:, None, :], torch.eye(text.shape[1], dtype=text.dtype)
    printed = eye - (1 - factor)[:, None, None] * (eye - outer)
    weight, moved_weight = (probabilities(text, audio, r, tau) for r in (0.0, radius))
    law = _of_negatives(_law(text, audio, radius, moved_weight, tau))
    # The positive pulls along the same Jacobian, which leaves a⁺'s part across û scaled like any other.
    pull = (printed.mT @ audio[:, :, None]).squeeze(2) * ((moved_weight.diagonal() - 1) / tau)[:, None]
    forces = push_by_negative(text, audio, radius, tau)
    along, across = _split(push_by_negative(text, audio, 0.0, tau) + alpha * forces, unit)
    a_parallel, a_across = _split(audio[None].expand(len(text), -1, -1), unit)
    both, suppressed = weight + alpha * moved_weight, weight + alpha * factor[:, None] * moved_weight
    parallel, perpendicular = (
        _of_negatives(share[:, :, None] / tau * part) for share, part in ((both, a_parallel), (suppressed, a_across))
    )
    gradient = _gradient(text, audio, radius, tau)
    rows = [
        ("Eq. 15", "∂t_sup/∂t = I − R/‖a − t‖ · P_⊥", printed, jacobian),
        ("Eq. 13", "∇L_svr = Jᵀ ∇L(t_sup), summed over all candidates", law.sum(1) + pull, gradient),
        ("Eq. 16", "push of each negative: a_∥ + (1 − R/‖a − t‖) a_⊥", law, forces),
        ("Eq. 17", "parallel part of the total push, each negative", parallel, along),
        ("Eq. 18", "perpendicular part of the total push, each negative", perpendicular, across),
    ]
    return pd.DataFrame(
        [(e, s, (ours - truth).abs().max().item(), truth.abs().max().item()) for e, s, ours, truth in rows],
        columns=["equation", "statement", "error", "scale"],
    )


def push_by_negative(anchor: Tensor, positive: Tensor, radius: float, tau: float, *, similarity: str = "dot") -> Tensor:
    """What each negative adds to ∇_t L_svr, by autograd: `(N, d)`, `(N, d)` → `(N, N, d)`, zero for the positive.

    A candidate's share is P_sup,j · ∂s(t_sup, a_j)/∂t, since ∂L/∂s_j = P_sup,j (Eq. 3).

    Args:
        anchor, positive: unit embeddings.
        radius: R.
        tau: temperature.
        similarity: "dot" or "cosine".

    Example:
        >>> push_by_negative(torch.eye(2), torch.eye(2).flip(0), 0.0, 1.0)[0]
        tensor([[0.0000, 0.0000],
                [0.7311, 0.0000]])
    """

    def scores(t: Tensor, a: Tensor) -> Tensor:
        moved = _moved(t, a, radius)
        return positive @ (F.normalize(moved, dim=0) if similarity == "cosine" else moved) / tau

    share = torch.func.vmap(torch.func.jacrev(scores))(anchor, positive)  # (N, candidates, d)
    push = share * probabilities(anchor, positive, radius, tau, similarity=similarity)[:, :, None]
    return _of_negatives(push)


def probabilities(anchor: Tensor, positive: Tensor, radius: float, tau: float, *, similarity: str = "dot") -> Tensor:
    """P_sup of Eq. 3 `(N, N)`; at R = 0 the P of InfoNCE."""
    moved = support_vector(anchor, positive, radius)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    return (moved @ positive.T / tau).softmax(dim=1)


def departure(anchor: Tensor, positive: Tensor, tau: float, *, radii: Sequence[float] | None = None) -> pd.DataFrame:
    """How far either reading of the similarity is from Eq. 16, over the radius; `(N, d)` each, on the sphere.

    Columns: similarity, radius, parallel and perpendicular (mean norm of the push's parts by negative, over those of
    the same negatives at R = 0), predicted (mean 1 − R/‖a − t‖), error (‖push − Eq. 16‖/‖Eq. 16‖ over all negatives).
    The probabilities are held at their values for each R, so that only the geometry is compared.
    """
    text, audio = anchor.double(), positive.double()
    distance = (audio - text).norm(dim=1)
    unit = F.normalize(audio - text, dim=1)
    sizes = np.linspace(0, 1.4 * float(distance.mean()), 15) if radii is None else radii
    rows = []
    for similarity in ("dot", "cosine"):
        for radius in map(float, sizes):
            push = push_by_negative(text, audio, radius, tau, similarity=similarity)
            weight = _of_negatives(probabilities(text, audio, radius, tau, similarity=similarity))
            law = _law(text, audio, radius, weight, tau)
            start = weight[:, :, None] / tau * audio[None]
            parts = [
                (_norms(part) / _norms(at_zero)).item()
                for part, at_zero in zip(_split(push, unit), _split(start, unit), strict=True)
            ]
            error = _norms(tangent(push - law, text[:, None])) / _norms(tangent(start, text[:, None]))
            predicted = (1 - radius / distance).mean().item()
            rows.append((similarity, radius, *parts, predicted, error.item()))
    columns = ["similarity", "radius", "parallel", "perpendicular", "predicted", "error"]
    return pd.DataFrame(rows, columns=columns)


def push_fan(anchor: Tensor, positive: Tensor, tau: float, *, fractions: Sequence[float]) -> pd.DataFrame:
    """The push of the SVR term (dot product) on one anchor of a batch, for radii that are fractions of its distance.

    The anchor is the one with the median distance from its positive; `(N, d)` each.

    Returns:
        Columns weights ("held": the probabilities of R = 0; "of t_sup": those that follow R), fraction, parallel (along
        û, signed), perpendicular (norm).
    """
    text, audio = anchor.double(), positive.double()
    distances = (audio - text).norm(dim=1)
    row = int(distances.argsort()[len(distances) // 2])
    unit = F.normalize(audio - text, dim=1)[row]
    held = probabilities(text, audio, 0.0, tau)[row]
    rows = []
    for fraction in fractions:
        radius = fraction * float(distances[row])
        push = push_by_negative(text, audio, radius, tau)[row]  # (N, d)
        followed = probabilities(text, audio, radius, tau)[row]
        for weights, ratio in (("held", held / followed), ("of t_sup", torch.ones_like(held))):
            total = (push * ratio[:, None]).sum(0)
            along = total @ unit
            rows.append((weights, fraction, along.item(), (total - along * unit).norm().item()))
    return pd.DataFrame(rows, columns=["weights", "fraction", "parallel", "perpendicular"])


def half_way(table: pd.DataFrame, distance: float) -> pd.Series:
    """The row of `departure` for the cosine at the radius nearest to half the distance of a pair."""
    cosine = table[table["similarity"] == "cosine"]
    return cosine.iloc[(cosine["radius"] - distance / 2).abs().argmin()]


def _moved(t: Tensor, a: Tensor, radius: float) -> Tensor:
    """t_sup of one pair, `(d,)` each, in a form that torch.func differentiates."""
    return t + radius * F.normalize(a - t, dim=0)


def _gradient(text: Tensor, audio: Tensor, radius: float, tau: float) -> Tensor:
    """∇_t of each text's own L_svr, `(N, d)`: autograd on the batch mean, so times N."""
    anchor = text.clone().requires_grad_()
    loss = svr(audio, anchor, radius, tau, similarity="dot", positive_in_denominator=True)
    (gradient,) = torch.autograd.grad(loss * len(text), anchor)
    return gradient


def _of_negatives(weights: Tensor) -> Tensor:
    """`(N, N)` or `(N, N, d)`, changed in place: 0 where the positive is."""
    weights[torch.eye(len(weights), dtype=torch.bool)] = 0
    return weights


def _split(vectors: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """`(N, M, d)` along and across `(N, d)`."""
    along = (vectors * unit[:, None]).sum(-1, keepdim=True) * unit[:, None]
    return along, vectors - along


def _law(text: Tensor, audio: Tensor, radius: float, weight: Tensor, tau: float) -> Tensor:
    """Eq. 16 with given probabilities `(N, N)` → `(N, N, d)`."""
    factor = 1 - radius / (audio - text).norm(dim=1)
    parallel, across = _split(audio[None].expand(len(text), -1, -1), F.normalize(audio - text, dim=1))
    return weight[:, :, None] / tau * (parallel + factor[:, None, None] * across)


def _norms(vectors: Tensor) -> Tensor:
    return vectors.norm(dim=-1).sum()

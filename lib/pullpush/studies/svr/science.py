"""What SVR does to a step: the proof of its push (SupCLAP Eq. 13–18) against autograd, and what a radius changes.

Everywhere `anchor` are the texts t⁺ and `positive` their sounds a⁺, `(N, d)` unit vectors each: row i belongs to row i,
and the other rows of `positive` are its negatives. A loss is a function of (audio, text) that gives the mean over a
batch. Rows that do not fill the last batch are left out; a batch larger than the set is the set.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import step_parts, tangent
from pullpush.lab.experiments import System
from pullpush.losses import TERMS, support_vector, svr
from pullpush.parallel import one_thread
from pullpush.training.recipes import recipe

Loss = Callable[[Tensor, Tensor], Tensor]
FITTING = 0.5  # the share of a batch's pairs that count as those which fit less


# ---------------------------------------------------------------- the proof


def proof_errors(anchor: Tensor, positive: Tensor, radius: float, tau: float, alpha: float = 1.0) -> pd.DataFrame:
    """SupCLAP Eq. 13–18 for the dot product against autograd in float64; alpha: weight of L_svr beside InfoNCE.

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
    leaf = text.clone().requires_grad_()
    loss = svr(audio, leaf, radius, tau, similarity="dot", positive_in_denominator=True) * len(text)
    (gradient,) = torch.autograd.grad(loss, leaf)
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

    Example:
        >>> push_by_negative(torch.eye(2), torch.eye(2).flip(0), 0.0, 1.0)[0]
        tensor([[0.0000, 0.0000],
                [0.7311, 0.0000]])
    """

    def scores(t: Tensor, a: Tensor) -> Tensor:
        moved = _moved(t, a, radius)
        return positive @ (F.normalize(moved, dim=0) if similarity == "cosine" else moved) / tau

    share = torch.func.vmap(torch.func.jacrev(scores))(anchor, positive)  # (N, candidates, d)
    return _of_negatives(share * probabilities(anchor, positive, radius, tau, similarity=similarity)[:, :, None])


def probabilities(anchor: Tensor, positive: Tensor, radius: float, tau: float, *, similarity: str = "dot") -> Tensor:
    """P_sup of Eq. 3 `(N, N)`; at R = 0 the P of InfoNCE."""
    moved = support_vector(anchor, positive, radius)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    return (moved @ positive.T / tau).softmax(dim=1)


def departure(anchor: Tensor, positive: Tensor, tau: float, *, radii: Sequence[float] | None = None) -> pd.DataFrame:
    """How far either reading of the similarity is from Eq. 16, over the radius.

    Columns: similarity, radius, parallel and perpendicular (mean norm of the push's parts by negative, over those of
    the same negatives at R = 0), across (cosine of the perpendicular parts with those at R = 0), predicted (mean
    1 − R/‖a − t‖), error (‖push − Eq. 16‖/‖Eq. 16‖ over all negatives).
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
            law, start = _law(text, audio, radius, weight, tau), weight[:, :, None] / tau * audio[None]
            pairs = list(zip(_split(push, unit), _split(start, unit), strict=True))
            parts = [(_norms(part) / _norms(at_zero)).item() for part, at_zero in pairs]
            here, at_zero = pairs[1]
            turned = ((here * at_zero).sum() / (here.norm(dim=-1) * at_zero.norm(dim=-1)).sum()).item()
            error = _norms(tangent(push - law, text[:, None])) / _norms(tangent(start, text[:, None]))
            rows.append((similarity, radius, *parts, turned, (1 - radius / distance).mean().item(), error.item()))
    columns = ["similarity", "radius", "parallel", "perpendicular", "across", "predicted", "error"]
    return pd.DataFrame(rows, columns=columns)


def push_fan(anchor: Tensor, positive: Tensor, tau: float, *, fractions: Sequence[float]) -> pd.DataFrame:
    """The push of the SVR term (dot product) on the anchor with the median distance from its positive, for radii that
    are fractions of it.

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


def _moved(t: Tensor, a: Tensor, radius: float) -> Tensor:
    """t_sup of one pair, `(d,)` each, in a form that torch.func differentiates."""
    return t + radius * F.normalize(a - t, dim=0)


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


# ---------------------------------------------------------------- what a loss asks of a step


def batches(count: int, size: int) -> list[slice]:
    """The rows of each batch that is full."""
    size = min(size, count)
    return [slice(start, start + size) for start in range(0, count - size + 1, size)]


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


def radius_effects(
    anchor: Tensor, positive: Tensor, tau: float, radii: Sequence[float], *, batch_size: int
) -> pd.DataFrame:
    """All that a radius changes in the SVR term alone (cosine, text-to-audio).

    Columns: radius; 1 − P_sup, the weight that the negatives are left with; parallel and perpendicular, mean norms of
    −∇_t along the geodesic direction and across it; across/along, their ratio; through t_sup, the share of the gradient
    on the sounds that reaches a⁺ through the support vector.
    """
    losses = {str(radius): partial(svr, radius=radius, tau=tau) for radius in radii}
    parts = parts_by_loss(anchor, positive, losses, batch_size=batch_size)
    parts = parts.drop(columns="drift").rename(columns={"loss": "radius"}).assign(radius=list(radii))
    parts["across/along"] = parts["perpendicular"] / parts["parallel"]
    of_batch = [(anchor[rows], positive[rows]) for rows in batches(len(anchor), batch_size)]
    found = np.array([[_weight_and_share(*pair, radius, tau) for pair in of_batch] for radius in radii])
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


def step_of(systems: Mapping[str, System], text: Tensor, audio: Tensor, tau: float, *, batch_size: int) -> pd.DataFrame:
    """What the objective of each system asks of the texts of a model, at one temperature.

    Returns:
        Columns system; parallel, perpendicular (mean norms along the geodesic direction and across it); across/along,
        their ratio; kept for pairs that fit, the mean length of the step of the better half of each batch's pairs (by
        cosine) over that of the other half; audio to audio, the share of the gradient on the sounds that comes to them
        through the support vector. Systems whose radius is learnt are left out: here nothing has taught it.
    """
    rows, size = [], min(batch_size, len(text))
    cosines = (text * audio).sum(dim=1)[: len(text) // size * size].view(-1, size)
    fits = (cosines > cosines.quantile(FITTING, dim=1, keepdim=True)).flatten()
    for name, (parts, options) in systems.items():
        if "dynamic" in parts:
            continue
        loss = _objective(parts, {**options, "tau": tau})
        with one_thread():
            found = step_parts(loss, text, audio, batch_size=size)
        along, across = found.parallel.abs(), found.perpendicular
        length = torch.hypot(along, across)
        kept, shares = (length[fits].mean() / length[~fits].mean()).item(), [0.0]
        if options.get("partner"):
            without = _objective(parts, {**options, "tau": tau, "partner": False})
            shares = [_changed(loss, without, audio[at], text[at]) for at in batches(len(text), size)]
        means = along.mean().item(), across.mean().item()
        rows.append((name, *means, means[1] / means[0], kept, float(np.mean(shares))))
    columns = ["system", "parallel", "perpendicular", "across/along", "kept for pairs that fit", "audio to audio"]
    return pd.DataFrame(rows, columns=columns)


def _objective(name: str, options: Mapping) -> Loss:
    """The sum of a recipe's terms as a function of (audio, text), at one temperature."""
    plain = {key: value for key, value in options.items() if key not in ("scalar_lr", "lr", "epochs")}
    terms = recipe(name, **plain).terms
    modules = [(term.weight, TERMS[term.name].make(**{**term.options, "tau": options["tau"]})) for term in terms]
    return lambda audio, text: sum((weight * module(audio, text).value for weight, module in modules), torch.zeros(()))


def _changed(loss: Loss, other: Loss, audio: Tensor, text: Tensor) -> float:
    """By how much two losses differ in their gradient on the sounds, as a share of the first one's norm."""
    leaf = audio.clone().requires_grad_()
    ours, theirs = (torch.autograd.grad(each(leaf, text), leaf)[0] for each in (loss, other))
    return ((ours - theirs).norm() / ours.norm()).item()

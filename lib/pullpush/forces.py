"""Contrastive learning as forces on an anchor: pull, push, and the parts of the push (SupCLAP §2, Appendix C).

The gradient of the text-to-audio InfoNCE loss with respect to a text embedding t⁺ is a sum of two forces
(Eq. 4): the pull of its positive audio a⁺ and the push of the negatives. The push splits along
û = (a⁺ − t⁺)/‖a⁺ − t⁺‖ into a parallel and a perpendicular part; the perpendicular one makes the path drift.
Forces are written as in the paper, as parts of the *gradient*, in float32 at least; the step goes the opposite way.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import (
    check_alike,
    check_count,
    check_floats,
    check_number,
    check_numbers_of,
    check_one_dtype,
    check_temperature,
)
from pullpush.losses.contract import Output
from pullpush.precision import in_single


class Forces(NamedTuple):
    """The forces on N anchors; every field is `(N, d)` but `p_positive`, `(N,)`."""

    pull: Tensor
    """F_pull = (P⁺ − 1) a⁺ / τ (Eq. 4)."""
    push: Tensor
    """F_push = Σ_j P_j⁻ a_j⁻ / τ (Eq. 4)."""
    parallel: Tensor
    """(F_push · û) û."""
    perpendicular: Tensor
    """F_push − parallel: F_push (I − ûû)."""
    unit: Tensor
    """û = (a⁺ − t⁺)/‖a⁺ − t⁺‖; zero where a⁺ = t⁺, which has no direction."""
    p_positive: Tensor
    """P⁺, the softmax probability of the positive (Eq. 2)."""

    @property
    def gradient(self) -> Tensor:
        """∇_t L = F_pull + F_push, `(N, d)`."""
        return self.pull + self.push


@in_single
def decompose(
    anchor: Tensor, candidates: Tensor, tau: float | Tensor = 0.07, *, positive: Tensor | None = None
) -> Forces:
    """Split the InfoNCE gradient of every anchor into its forces.

    `decompose(text, audio)` are the forces on texts (text-to-audio), `decompose(audio, text)` those on clips.

    Args:
        anchor: `(N, d)`, as they enter the loss (usually L2-normalised; no normalisation is applied, and the forces
            are those on the embedding itself, as in Eq. 4).
        candidates: `(M, d)`. M may exceed N, e.g. the whole training set for the *global* component.
        tau: temperature.
        positive: `(N,)` int64, the row of `candidates` that is each anchor's positive; default: row i, needing M = N.

    Returns:
        Forces per anchor, of the **per-sample** loss (Eq. 1), not divided by N.

    Raises:
        ValueError: shapes that do not fit, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> text, audio = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.6, 0.8], [0.8, -0.6]])
        >>> forces = decompose(text, audio, tau=0.5)
        >>> forces.pull  # along −a⁺, for these are parts of the gradient
        tensor([[-0.7184, -0.9579],
                [-1.5083,  1.1312]])
    """
    check_one_dtype(anchor=anchor, candidates=candidates)
    if anchor.ndim != 2 or candidates.ndim != 2 or anchor.shape[1] != candidates.shape[1]:
        raise ValueError(
            f"anchor (N, d) and candidates (M, d) must share d, got {tuple(anchor.shape)} and {tuple(candidates.shape)}"
        )
    check_temperature(tau)
    if positive is None:
        if len(anchor) != len(candidates):
            raise ValueError(
                f"{len(anchor)} anchors and {len(candidates)} candidates: name each anchor's row with `positive`"
            )
        positive = torch.arange(len(anchor), device=anchor.device)
    check_numbers_of("positive", positive, len(anchor), len(candidates))
    probability = (anchor @ candidates.T / tau).softmax(dim=1)  # Eq. 2 and 3
    p_positive = probability.gather(1, positive[:, None]).squeeze(1)
    # 1 − P⁺ as the sum over the negatives: exact where P⁺ rounds to 1.
    negative = probability.scatter(1, positive[:, None], 0.0)
    partner = candidates[positive]
    pull = -negative.sum(dim=1, keepdim=True) * partner / tau
    push = negative @ candidates / tau
    unit = F.normalize(partner - anchor, dim=1)
    parallel = (push * unit).sum(dim=1, keepdim=True) * unit
    return Forces(pull, push, parallel, push - parallel, unit, p_positive)


@in_single
def drift(update: Tensor, pull: Tensor) -> Tensor:
    """Cosine similarity of update and pull per sample, `(N, d)`, `(N, d)` → `(N,)` (SupCLAP Figure 1).

    High means little drift. Give both with one sign: the gradient with F_pull, or the step taken with −F_pull.
    NaN where either vector is zero: without a movement there is no direction.

    Raises:
        ValueError: shapes that differ.

    Example:
        >>> drift(torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0, 3.0]]))
        tensor([0.7071])
    """
    check_alike(update=update, pull=pull)
    # Normalise before the product, so that tiny gradients do not fall under cosine_similarity's epsilon.
    norms = update.norm(dim=-1), pull.norm(dim=-1)
    cosine = (update / norms[0].unsqueeze(-1) * (pull / norms[1].unsqueeze(-1))).sum(dim=-1)
    return cosine.clamp(-1, 1)


@in_single
def tangent(vector: Tensor, at: Tensor) -> Tensor:
    """The part of `vector` along the unit sphere at unit vectors `at`; both `(N, d)`, or `(N, K, d)` at `(N, 1, d)`.

    Normalised embeddings can only move this way, so drift of embeddings on the sphere compares tangent vectors.

    Raises:
        ValueError: shapes that differ.

    Example:
        >>> tangent(torch.tensor([[2.0, 3.0]]), at=torch.tensor([[1.0, 0.0]]))
        tensor([[0., 3.]])
    """
    check_floats(vector=vector, at=at)
    # An axis between may be 1, where many vectors act on one point.
    if vector.ndim != at.ndim or any(
        of_at != of_vector and not (of_at == 1 and 0 < axis < at.ndim - 1)
        for axis, (of_vector, of_at) in enumerate(zip(vector.shape, at.shape, strict=True))
    ):
        raise ValueError(f"vector {tuple(vector.shape)} and at {tuple(at.shape)} must have one shape")
    return vector - (vector * at).sum(dim=-1, keepdim=True) * at


@in_single
def sideways(vector: Tensor, anchor: Tensor, positive: Tensor) -> Tensor:
    """The part of `vector` outside the plane of each anchor and its positive; all `(N, d)`.

    The pull lies in that plane, and on the unit sphere every movement within it follows the great circle through both:
    nearer or farther. Only this part takes an anchor off the way to its positive. SupCLAP's F_⊥ is larger: it also
    holds a part along t⁺ + a⁺, within the plane.

    Example:
        >>> anchor, positive, across = torch.eye(3)[:, None]  # of length 1, at right angles
        >>> sideways(anchor + positive + 3 * across, anchor, positive).round(decimals=4)
        tensor([[0., 0., 3.]])
    """
    check_alike(2, vector=vector, anchor=anchor, positive=positive)
    across = F.normalize(positive - anchor, dim=1)
    rest = positive + anchor - ((positive + anchor) * across).sum(1, keepdim=True) * across
    middle = F.normalize(rest, dim=1)
    return vector - (vector * across).sum(1, keepdim=True) * across - (vector * middle).sum(1, keepdim=True) * middle


class DistanceChange(NamedTuple):
    """The two terms of SupCLAP Eq. 12 for one step t − ηF; each `(N,)`."""

    ideal: Tensor
    """−η(2t⁺ − 2a⁺ − ηF_∥)ᵀF_∥: what the step does along the straight line to the positive."""
    noise_penalty: Tensor
    """η²‖F_⊥‖²: what the sideways part of the step costs."""

    @property
    def total(self) -> Tensor:
        """‖t⁺_next − a⁺‖² − ‖t⁺ − a⁺‖², `(N,)`."""
        return self.ideal + self.noise_penalty


@in_single
def distance_change(anchor: Tensor, positive: Tensor, force: Tensor, *, step: float | Tensor = 1.0) -> DistanceChange:
    """Split the change of squared distance to the positive into Eq. 12's two terms, for *any* step.

    Args:
        anchor: `(N, d)` before the step.
        positive: `(N, d)` their positives, held still.
        force: `(N, d)` F, of which −η·F is the step. For a step Δ that was observed use `force=-delta`, step 1.
        step: η.

    Example:
        >>> anchor, positive = torch.tensor([[0.0, 0.0]]), torch.tensor([[2.0, 0.0]])
        >>> change = distance_change(anchor, positive, force=torch.tensor([[-1.0, 1.0]]))
        >>> change.ideal, change.noise_penalty  # from 2² to 1² along the line, and 1² across it
        (tensor([-3.]), tensor([1.]))
    """
    check_alike(2, anchor=anchor, positive=positive, force=force)
    check_number("step", step)
    unit = F.normalize(positive - anchor, dim=1)
    parallel = (force * unit).sum(dim=1, keepdim=True) * unit
    perpendicular = force - parallel
    ideal = -step * ((2 * anchor - 2 * positive - step * parallel) * parallel).sum(dim=1)
    return DistanceChange(ideal, step**2 * perpendicular.square().sum(dim=1))


class LocalGlobal(NamedTuple):
    """The perpendicular force of random mini-batches against that of all negatives; each `(N,)`, squared norms.

    E‖F_⊥(batch)‖² = ‖E F_⊥(batch)‖² + variance: a part that every batch repeats and a part that changes from
    step to step, the *local* component of SupCLAP Figure 2.
    """

    whole: Tensor
    """‖F_⊥‖² with every other row as a negative: the paper's global component."""
    batch: Tensor
    """Mean ‖F_⊥‖² over mini-batches."""
    variance: Tensor
    """Mean ‖F_⊥ − E F_⊥‖² over mini-batches (unbiased): the fluctuating part of `batch`."""
    cosine: Tensor
    """Mean cosine of a mini-batch's F_⊥ with the global F_⊥."""


@in_single
def local_global(
    anchor: Tensor, positive: Tensor, tau: float = 0.07, *, batch_size: int, epochs: int = 16, seed: int = 0
) -> LocalGlobal:
    """Compare the perpendicular force that mini-batches exert with the one of the whole set.

    Each of `epochs` random partitions puts every anchor in one batch; rows that do not fill the last batch sit
    that epoch out.

    Args:
        anchor: `(N, d)`.
        positive: `(N, d)` their positives, and each other's negatives.
        tau: temperature.
        batch_size: rows in a mini-batch, 2 … N.
        epochs: partitions, at least 2.
        seed: seed of the partitions.

    Raises:
        ValueError: for a batch size or number of epochs out of range.

    Example:
        >>> pairs = torch.eye(4)
        >>> local_global(pairs, pairs.roll(1, 0), batch_size=4).cosine.round(decimals=4)  # one batch is the whole
        tensor([1., 1., 1., 1.])
    """
    check_alike(2, anchor=anchor, positive=positive)
    check_count("batch_size", batch_size, least=2, most=len(anchor))
    check_count("epochs", epochs, least=2)
    n = len(anchor)
    whole = decompose(anchor, positive, tau).perpendicular
    generator = torch.Generator().manual_seed(seed)
    count, squares, cosines = (torch.zeros(n, dtype=anchor.dtype, device=anchor.device) for _ in range(3))
    total = torch.zeros_like(anchor)
    for _ in range(epochs):
        order = torch.randperm(n, generator=generator).to(anchor.device)
        for rows in order[: n - n % batch_size].view(-1, batch_size):
            part = decompose(anchor[rows], positive[rows], tau).perpendicular
            count[rows] += 1
            total[rows] += part
            squares[rows] += part.square().sum(1)
            cosines[rows] += drift(part, whole[rows])
    if count.min() < 2:
        raise ValueError(f"{epochs} epochs left an anchor with fewer than two batches: raise epochs")
    mean_square = squares / count
    variance = (mean_square - (total / count[:, None]).square().sum(1)) * count / (count - 1)
    return LocalGlobal(whole.square().sum(1), mean_square, variance, cosines / count)


class StepParts(NamedTuple):
    """What a loss asks of N anchors on the unit sphere, −∇ of each anchor's own loss; each `(N,)`."""

    parallel: Tensor
    """Along the geodesic direction to the positive; negative where it leads away."""
    perpendicular: Tensor
    """Norm of what is across that direction."""
    cosine: Tensor
    """Cosine of the step and the geodesic direction: 1 is no drift."""


@torch.inference_mode(False)  # with gradients, wherever it is asked
@in_single
def step_parts(
    loss: Callable[[Tensor, Tensor], Tensor | Output], anchor: Tensor, positive: Tensor, *, batch_size: int
) -> StepParts:
    """Audit any loss: the step it asks of anchors, along the geodesic direction to their positives and across it.

    The gradient is taken batch by batch and projected on the sphere, since normalised embeddings move on nothing else.

    Args:
        loss: of (positive, anchor), such as `InfoNCE(direction="t2a")` of (audio, text): the mean over a batch.
        anchor: `(N, d)` unit vectors.
        positive: `(N, d)` unit vectors; row i is the positive of anchor i, and the rest of its batch are negatives.
        batch_size: rows in a batch, 2 … N; those that do not fill the last one are left out.

    Example:
        >>> away = lambda positive, anchor: (positive * anchor).sum(1).mean()
        >>> step_parts(away, torch.eye(2), torch.eye(2).flip(0), batch_size=2).cosine
        tensor([-1., -1.])
    """
    check_alike(2, anchor=anchor, positive=positive)
    check_count("batch_size", batch_size, least=2, most=len(anchor))
    parts = []
    for start in range(0, len(anchor) - batch_size + 1, batch_size):
        start_point = anchor[start : start + batch_size].clone().requires_grad_()
        target = positive[start : start + batch_size].clone()
        found = loss(target, start_point)
        value = found.value if isinstance(found, Output) else found
        (gradient,) = torch.autograd.grad(value * len(target), start_point)
        point = start_point.detach()
        step = tangent(-gradient, point)
        unit = F.normalize(tangent(target - point, point), dim=1)
        along = (step * unit).sum(1)
        across = (step - along[:, None] * unit).norm(dim=1)
        parts.append((along, across, along / step.norm(dim=1).clamp(min=1e-12)))
    return StepParts(*(torch.cat(values) for values in zip(*parts, strict=True)))

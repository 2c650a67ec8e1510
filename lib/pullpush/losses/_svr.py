"""Support Vector Regularization (SupCLAP Eq. 6–9, Appendices B and D).

A support vector is the anchor moved by the semantic radius R towards its positive. Contrasting it with the same
candidates keeps the part of every negative's push that lies along the pull, and scales the perpendicular part by
1 − R/‖a⁺ − t⁺‖ (Eq. 16).

No second encoder pass is needed, and no second N × N matrix of similarities either. With c = R/‖a⁺ − t⁺‖,
t_sup·Aᵀ = (1 − c) T·Aᵀ + c A·Aᵀ = ((1 − c) T + c A)·Aᵀ: the right-hand side needs one product instead of two, two
instead of four in the backward pass, and does not subtract two large matrices where a ≈ t makes c large.

Inside, all that is contrasted at one time is one tensor `(G, N, d)`: G groups, each among itself. Languages and the
two directions are groups, so that a small batch costs one call of each operation, whatever the number of languages.
"""

from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature, is_batched
from pullpush.losses._radius import RadiusPredictor, check_radius, outside, positive_first
from pullpush.losses._softmax import Rows
from pullpush.losses._tiles import fits, inverse, tiled
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import EXACT, checked

Similarity = Literal["cosine", "dot"]
Modelling = Literal["static", "dynamic"]


def support_vector(anchor: Tensor, positive: Tensor, radius: float | Tensor) -> Tensor:
    """t_sup = t⁺ + R·û, û = (a⁺ − t⁺)/‖a⁺ − t⁺‖: each anchor moved by R towards its positive (SupCLAP §3.1).

    R = 0 gives the anchor, R = ‖a⁺ − t⁺‖ the positive, R > ‖a⁺ − t⁺‖ a point beyond it, R < 0 one on the far side of
    the anchor. Where a⁺ = t⁺ (distance under 16 machine epsilons: rounding alone) there is no direction to move in:
    the support vector is the anchor, and neither R nor a⁺ gets a gradient. Just above, the gradient is finite but
    grows as R/‖a⁺ − t⁺‖, as Eq. 15 says.

    Args:
        anchor: `(N, d)` floating point. Texts for text-to-audio.
        positive: `(N, d)`, row i is the positive of anchor i.
        radius: R, a number, a 0-d tensor or `(N,)`; any sign.

    Returns:
        `(N, d)`, in the dtype of `anchor` (bfloat16 and float16 are computed in float32). Not normalised.

    Raises:
        ValueError: shapes that do not fit, or a radius that is not finite (numbers only).
        TypeError: embeddings that are not floating point.

    Example:
        >>> support_vector(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), radius=2**0.5 / 2)  # half the way
        tensor([[0.5000, 0.5000]])
    """
    with checked(anchor=anchor, positive=positive) as (start, end):
        radius = check_radius(radius, start, start.shape[:-1])
        return _move(start, *_towards(start, end), radius).to(anchor.dtype)


def svr(
    audio: Tensor,
    text: Tensor,
    radius: float | Tensor,
    tau: float | Tensor = 0.07,
    direction: Direction = "t2a",
    similarity: Similarity = "cosine",
    positive_in_denominator: bool = True,
) -> Tensor:
    """L_svr of SupCLAP Eq. 6, without its weight α: InfoNCE with every anchor replaced by its support vector.

    `"t2a"` (the paper's "uni") moves texts towards their audio and contrasts them with all audios; `"a2t"` exchanges
    the roles; `"both"` ("bi") is their sum, with one radius for both.

    The paper leaves two things open; both readings are here. `similarity="cosine"` (its definition of s) renormalises
    t_sup; `"dot"` does not, and only then are Eq. 16–18 exact. Eq. 6 as printed sums the denominator over the
    negatives alone (`positive_in_denominator=False`; the loss may be negative), while P_sup follows Eq. 3, which
    includes the positive (default; at R = 0 the loss is `info_nce` of that direction).

    R < 0 magnifies the perpendicular push and R > ‖a⁺ − t⁺‖ inverts it; both are computed as they stand, see
    `radius_constraint`. With the cosine the loss stays bounded as `|R|` grows (t_sup turns into ±û), with the dot
    product it grows linearly. a⁺ = t⁺ and vectors t_sup without length are finite in value and gradient.

    Memory beyond the embeddings and their gradients is 64 MiB in float32 whatever N is: similarities are made and
    used in tiles, and their gradient is taken at once. Differentiable once; of the transforms of `torch.func`, `vmap`
    alone, where all similarities are held.

    Scale: each direction is a mean over N (and G), and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings; or `(G, N, d)`, G groups contrasted each among itself.
        text: of the same shape, L2-normalised text embeddings; row i matches row i of `audio`.
        radius: R, a number, a 0-d tensor or one for each row, `(N,)` or `(G, N)`, which gradients reach.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"`.
        similarity: `"cosine"` or `"dot"`.
        positive_in_denominator: whether the positive is one of the candidates.

    Returns:
        0-d tensor, mean over N and G, float32 at least. Zero for N = 1, where there is nothing to push away from.

    Raises:
        ValueError: wrong shapes, a radius that is not finite or of another shape, a temperature that is not positive,
            an unknown direction or similarity.
        TypeError: embeddings, or radii, that are not floating point.

    Example:
        >>> pairs = torch.eye(3)
        >>> svr(pairs, pairs.roll(1, 0), radius=0.0, tau=0.5)  # R = 0: InfoNCE from texts to clips
        tensor(2.2395)
        >>> svr(pairs, pairs.roll(1, 0), radius=2**0.5, tau=0.5)  # R = ‖a − t‖: every text on its clip
        tensor(0.2395)
    """
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    check_choice("similarity", similarity, get_args(Similarity))
    with checked(groups=True, audio=audio, text=text) as (a, t):
        if direction == "both" and not fits(a.shape[-2]):  # in turn: together they would be stacked, and both be held
            one = partial(
                svr, a, t, radius, tau, similarity=similarity, positive_in_denominator=positive_in_denominator
            )
            return one(direction="t2a") + one(direction="a2t")
        anchor, positive = _stack(a, t, direction)
        r = check_radius(radius, anchor, audio.shape[:-1])
        if r.ndim == 2 and direction == "both":
            r = r.repeat(2, 1)
        loss, _ = _moved_loss(anchor, positive, r, tau, similarity, positive_in_denominator)
        if direction == "both":
            loss = 2 * loss  # the sum of the directions, not their mean
    return loss


class SVR(Tempered):
    """α·L_svr + β·L_cons, to be added to InfoNCE or SigLIP (SupCLAP Eq. 6 and 9), with a radius that learns.

    modelling: `"static"`, one learnable scalar for all samples and both directions (`learnable=False` fixes it), or
    `"dynamic"`, a `RadiusPredictor` on the similarities cos/τ, one for both directions.
    direction: `"both"` ("bi"), `"t2a"` ("uni") or `"a2t"`.
    alpha, beta: the weights; the paper has α = 1 and, for DynamicSVR, β = 0.01; 0 leaves the constraint out.
    tau, similarity, positive_in_denominator: as in `svr`; learnable: heeded by the static radius alone. A temperature
    that learns is another loss's (`svr.temperature = infonce.temperature`) or the model's (`svr(audio, text, tau=…)`).
    radius: initial R, which the paper does not give.
    batch_size, hidden: of the predictor; None: as many as the first batch has. Shorter batches work, longer ones are
    refused. Call it once before DistributedDataParallel or a count of parameters, or say how large batches are.

    Two choices that the paper leaves open: the predictor sees similarities without passing gradients on to them (Eq.
    14 holds R constant in t), and the constraint does not move embeddings (Appendix B: it is on the predictor).

    Example:
        >>> value, report = SVR("static", beta=0.0, radius=0.0)(torch.eye(3), torch.eye(3).roll(1, 0))
        >>> report["radius"]
        tensor(0.)
    """

    languages = "groups"

    def __init__(
        self,
        modelling: Modelling = "dynamic",
        *,
        direction: Direction = "t2a",
        alpha: float = 1.0,
        beta: float = 0.01,
        tau: float = 0.07,
        similarity: Similarity = "cosine",
        positive_in_denominator: bool = True,
        radius: float = 0.1,
        learnable: bool = True,
        batch_size: int | None = None,
        hidden: int = 64,
    ) -> None:
        super().__init__(tau)
        check_number("alpha", alpha)
        check_number("beta", beta)
        check_number("radius", radius)
        check_choice("modelling", modelling, get_args(Modelling))
        check_choice("direction", direction, DIRECTIONS)
        check_choice("similarity", similarity, get_args(Similarity))
        self.direction, self.alpha, self.beta = direction, alpha, beta
        self.similarity, self.positive_in_denominator = similarity, positive_in_denominator
        self.predictor = RadiusPredictor(batch_size, hidden=hidden, initial=radius) if modelling == "dynamic" else None
        if modelling == "static":
            self.scalar = nn.Parameter(torch.tensor(float(radius)), requires_grad=learnable)

    def _radius(self, anchor: Tensor, positive: Tensor) -> Tensor:
        """Anchors and positives as `_stack` gives them, `(G, N, d)` → R, 0-d (static) or `(G, N)` (dynamic)."""
        if self.predictor is None:
            return self.scalar
        with torch.no_grad():
            groups = len(anchor) // (2 if self.direction == "both" else 1)
            scores = anchor[:groups] @ positive[:groups].mT / self.tau
            both = (scores, scores.mT)[: len(anchor) // groups]  # each direction has the same similarities
            if is_batched():  # where nothing can be written into what is there
                rows = torch.cat([positive_first(each) for each in both])
            else:
                rows = scores.new_empty(len(anchor), *scores.shape[1:])
                for each, out in zip(both, rows.split(groups), strict=True):
                    positive_first(each, out=out)
        return self.predictor(rows)

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` L2-normalised → the loss; or `(G, N, d)`, `(G, N, d)` → the mean over the G groups.

        Returns:
            The loss, and in its report `radius`, the mean R (SupCLAP Figure 3).

        Raises:
            ValueError: more rows than the predictor was made for.
        """
        anchor, positive = _stack(audio, text, self.direction)
        radius = self._radius(anchor, positive).to(anchor.dtype)
        form = self.tau, self.similarity, self.positive_in_denominator
        loss, distance = _moved_loss(anchor, positive, radius, *form)
        loss = (2 * self.alpha if self.direction == "both" else self.alpha) * loss  # Eq. 6
        if self.beta:  # Eq. 9 has one L_cons: the mean over all radii in use
            loss = loss + self.beta * outside(radius, distance)
        return Output(loss, {"radius": radius.detach().mean()})


CARD = LossCard(
    name="svr",
    make=SVR,
    title="SVR",
    about="InfoNCE of anchors moved towards their positives by a learnable radius, to be added to a loss.",
    source="SupCLAP Eq. 6–9, Appendix B",
    citation="supclap",
    colour="green",
    ordered=True,
)


def _stack(audio: Tensor, text: Tensor, direction: Direction) -> tuple[Tensor, Tensor]:
    """`(N, d)` or `(G, N, d)` → anchors and their positives, `(G, N, d)`; `(2G, N, d)` of both directions."""
    a, t = (x if x.ndim == 3 else x[None] for x in (audio, text))
    if direction == "both":
        return torch.cat([t, a]), torch.cat([a, t])
    return (t, a) if direction == "t2a" else (a, t)


def _towards(anchor: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """a⁺ − t⁺ and its length, `(…, N, d)` and `(…, N)`."""
    difference = positive - anchor
    return difference, torch.linalg.vector_norm(difference, dim=-1)


def _or_inf(length: Tensor) -> Tensor:
    """Lengths, rounding alone (under 16 ε) made infinite *before* a division, so that a mask lets no NaN through."""
    return length.masked_fill(length <= 16 * torch.finfo(length.dtype).eps, torch.inf)


def _unit(x: Tensor) -> Tensor:
    """Rows of unit length; those of none are zero."""
    return x / _or_inf(torch.linalg.vector_norm(x, dim=-1, keepdim=True))


def _move(anchor: Tensor, difference: Tensor, distance: Tensor, radius: Tensor) -> Tensor:
    """t + R·û = t + c·(a − t), c = R/‖a − t‖; autograd gives Eq. 15's Jacobian I − c·(I − ûûᵀ)."""
    c = radius / _or_inf(distance)
    return torch.addcmul(anchor, c.unsqueeze(-1), difference)


def _moved_loss(
    anchor: Tensor, positive: Tensor, radius: Tensor, tau: float | Tensor, similarity: Similarity, include: bool
) -> tuple[Tensor, Tensor]:
    """L_svr, and ‖a⁺ − t⁺‖, `(G, N)`, detached; above one tile of scores support vectors are made tile by tile."""
    if fits(anchor.shape[1]):
        difference, distance = _towards(anchor, positive)
        moved = _move(anchor, difference, distance, radius)
        return _support_loss(moved, positive, tau, similarity, include), distance.detach()
    distance = torch.linalg.vector_norm(positive.detach() - anchor.detach(), dim=-1)  # before there are gradients
    rule, each = Rows(anchor, positive_in_denominator=include), radius.expand(distance.shape)
    make = partial(_support_rows, similarity=similarity)
    return tiled(anchor, positive, rule, inverse(tau, anchor), each=each, make=make), distance


def _support_rows(anchor: Tensor, positive: Tensor, radius: Tensor, similarity: Similarity) -> Tensor:
    """Support vectors, for the cosine of unit length."""
    moved = _move(anchor, *_towards(anchor, positive), radius)
    return _unit(moved) if similarity == "cosine" else moved


def _support_loss(
    moved: Tensor, positive: Tensor, tau: float | Tensor, similarity: Similarity, include: bool
) -> Tensor:
    """L_svr of support vectors and their positives, `(G, N, d)` → 0-d, the mean over N and G."""
    # Dividing (N, d) rather than (N, N) by τ saves a pass over the similarities.
    if similarity == "cosine":
        query = moved * (1 / _or_inf(torch.linalg.vector_norm(moved, dim=-1)) / tau).unsqueeze(-1)
    else:
        query = moved / tau
    if query.shape[1] == 1:
        return (query * positive).sum() * 0  # no negatives: zero loss and gradient, even without the positive
    if is_batched():
        return _all_at_once(query @ positive.mT, include)
    return tiled(query, positive, Rows(query, positive_in_denominator=include))


def _all_at_once(scores: Tensor, include: bool) -> Tensor:
    """`Rows` of scores, `(G, N, N)`, by operations that `torch.vmap` knows."""
    positive = scores.diagonal(dim1=-2, dim2=-1)
    itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    loss = scores.masked_fill(itself, -torch.inf).logsumexp(dim=-1) - positive
    return (F.softplus(loss, threshold=EXACT) if include else loss).mean()

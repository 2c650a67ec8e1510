"""Support Vector Regularization (SupCLAP Eq. 6–9, Appendices B, D and E.4).

A support vector is the anchor moved by the semantic radius R towards its positive. Contrasting it with the same
candidates keeps the part of every negative's push that lies along the pull, and scales the perpendicular part by
1 − R/‖a⁺ − t⁺‖ (Eq. 16).

No second encoder pass is needed, and no second N × N matrix of similarities either. With c = R/‖a⁺ − t⁺‖,
t_sup·Aᵀ = (1 − c) T·Aᵀ + c A·Aᵀ = ((1 − c) T + c A)·Aᵀ: the right-hand side needs one product instead of two, two
instead of four in the backward pass, and does not subtract two large matrices where a ≈ t makes c large.

Inside, all that is contrasted at one time is one tensor `(G, N, d)`: G groups, each among itself. Languages and the
two directions are groups, so that a small batch costs one call of each operation, whatever the number of languages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from pullpush.losses._checks import check_pair, check_temperature
from pullpush.losses.infonce import DIRECTIONS, Direction
from pullpush.losses.temperature import Tempered

Similarity = Literal["cosine", "dot"]
SIMILARITIES = ("cosine", "dot")
Modelling = Literal["static", "dynamic"]
MODELLINGS = ("static", "dynamic")
Reweighting = Literal["gradient", "softmax"]
REWEIGHTINGS = ("gradient", "softmax")

# Similarities held at once, 64 MiB in float32: many enough to fill a GPU, few enough not to count beside an encoder.
BLOCK = 2**24


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
    """
    check_pair(positive, anchor)
    with torch.autocast(anchor.device.type, enabled=False):  # differences of near vectors do not bear bfloat16
        start, end = _widen(anchor, positive)
        radius = _check_radius(radius, start, start.shape[:-1])
        return _move(start, *_towards(start, end), radius).to(anchor.dtype)


def svr(
    audio: Tensor,
    text: Tensor,
    radius: float | Tensor,
    tau: float | Tensor = 0.07,
    direction: Direction = "t2a",
    *,
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
    `radius_constraint`. With the cosine the loss stays bounded as |R| grows (t_sup turns into ±û), with the dot
    product it grows linearly. a⁺ = t⁺ and vectors t_sup without length are finite in value and gradient.

    Memory beyond the embeddings is 64 MiB in float32 whatever N is: similarities are made and used in blocks of
    rows, and their gradient is taken at once. Differentiable once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings; or `(G, N, d)`, G groups contrasted each among itself.
        text: of the same shape, L2-normalised text embeddings; row i matches row i of `audio`.
        radius: R, a number, a 0-d tensor or one for each row, `(N,)` or `(G, N)`, which gradients reach.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"`.
        similarity: `"cosine"` or `"dot"`.
        positive_in_denominator: whether the positive is one of the candidates.

    Returns:
        0-d tensor, mean over N and G, in the dtype of the embeddings; bfloat16 and float16 are computed in float32,
        also under autocast. Zero for N = 1 in either reading: there is nothing to push away from.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown direction or similarity.
        TypeError: embeddings that are not floating point.
    """
    _check_groups(audio, text)
    check_temperature(tau)
    for name, value, known in (("direction", direction, DIRECTIONS), ("similarity", similarity, SIMILARITIES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}")
    with torch.autocast(audio.device.type, enabled=False):  # similarities near 1 do not bear bfloat16
        anchor, positive = _stack(audio, text, direction)
        r = _check_radius(radius, anchor, audio.shape[:-1])
        if r.ndim == 2 and direction == "both":
            r = r.repeat(2, 1)
        moved = _move(anchor, *_towards(anchor, positive), r)
        loss = _support_loss(moved, positive, tau, similarity, positive_in_denominator)
        if direction == "both":
            loss = 2 * loss  # the sum of the directions, not their mean
    return loss.to(audio.dtype)


def radius_constraint(radius: float | Tensor, distance: Tensor) -> Tensor:
    """L_cons = ReLU(R − ‖a⁺ − t⁺‖) + ReLU(−R), mean over N (SupCLAP Appendix B), without its weight β.

    Zero for 0 ≤ R ≤ ‖a⁺ − t⁺‖, where 1 − R/‖a⁺ − t⁺‖ lies in [0, 1]: the perpendicular push is neither inverted nor
    magnified.

    Args:
        radius: R, a number, a 0-d tensor or `(N,)`.
        distance: `(N,)` ‖a⁺ − t⁺‖. Gradients reach it too, and would push pairs *apart*: detach it where the
            constraint is to teach the radius only, as `SVR` does.

    Returns:
        0-d tensor.

    Raises:
        ValueError: shapes that do not fit.
    """
    if distance.ndim != 1 or len(distance) == 0:
        raise ValueError(f"distance must have shape (N,) with N ≥ 1, got {tuple(distance.shape)}")
    return _outside(_check_radius(radius, distance, distance.shape), distance)


class RadiusPredictor(nn.Module):
    """DynamicSVR's f_θ: the similarities of an anchor, its positive first, to its radius (SupCLAP §3.2).

    A perceptron of three layers, `batch_size` → `hidden` → `hidden` → 1. Its input is as wide as the batch, so:

    - A shorter batch, as the last of an epoch, is filled up by repeating each row's own negatives in turn: the
      network sees the distribution that it knows. A row without negatives (N = 1) is filled with zeros, the
      similarity of unrelated embeddings.
    - A longer batch is refused.
    - Negatives come in the order of the batch, as in the paper, so that a permutation of the batch may change R.

    The last layer starts at zero weight and bias `initial`: at first every radius is `initial`, as StaticSVR's.
    """

    def __init__(self, batch_size: int, *, hidden: int = 64, initial: float = 0.0) -> None:
        super().__init__()
        if batch_size < 1 or hidden < 1:
            raise ValueError(f"batch_size and hidden must be at least 1, got {batch_size} and {hidden}")
        self.batch_size = batch_size
        self.layers = nn.Sequential(
            nn.Linear(batch_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.constant_(self.layers[-1].bias, initial)

    def forward(self, similarity: Tensor) -> Tensor:
        """`(N, N)` similarities, the positive in column 0 (see `positive_first`), N ≤ batch_size → `(N,)` radii.

        Or `(G, N, N)` → `(G, N)`.

        Raises:
            ValueError: not `(N, N)`, or more rows than `batch_size`.
        """
        n = similarity.shape[-1]
        if similarity.ndim not in (2, 3) or similarity.shape[-2] != n or n == 0:
            raise ValueError(
                f"similarity must have shape (N, N) or (G, N, N) with N ≥ 1, got {tuple(similarity.shape)}"
            )
        if n > self.batch_size:
            raise ValueError(f"a batch of {n} does not fit a RadiusPredictor made for batch_size={self.batch_size}")
        with torch.autocast(similarity.device.type, enabled=False):
            first = self.layers[0].weight
            return self.layers(self._fill(similarity.to(first.dtype))).squeeze(-1)

    def _fill(self, similarity: Tensor) -> Tensor:
        """`(…, N, N)` → `(…, N, batch_size)`: repeat each row's negatives until it is full."""
        n = similarity.shape[-1]
        missing = self.batch_size - n
        if missing == 0:
            return similarity
        if n == 1:
            return F.pad(similarity, (0, missing))
        columns = 1 + torch.arange(missing, device=similarity.device) % (n - 1)
        return torch.cat([similarity, similarity[..., columns]], dim=-1)


def positive_first(similarity: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`(N, N)` similarities with positives on the diagonal → each row's positive first, then its negatives in order.

    Or `(G, N, N)` → `(G, N, N)`. `out`: where to put the result, of its shape and dtype; not for gradients.
    """
    *groups, n, _ = similarity.shape
    # Rows of N + 1 start one past a diagonal element, so that the next one is in the last column.
    negatives = similarity.flatten(-2)[..., 1:].view(*groups, n - 1, n + 1)[..., :-1].reshape(*groups, n, n - 1)
    return torch.cat([similarity.diagonal(dim1=-2, dim2=-1).unsqueeze(-1), negatives], dim=-1, out=out)


class SVR(Tempered):
    """α·L_svr + β·L_cons, to be added to InfoNCE or SigLIP (SupCLAP Eq. 6 and 9), with a radius that learns.

    modelling: `"static"`, one learnable scalar for all samples and both directions (`learnable=False` fixes it), or
        `"dynamic"`, a `RadiusPredictor` on the similarities cos/τ, one for both directions.
    direction: `"both"` ("bi"), `"t2a"` ("uni") or `"a2t"`.
    alpha, beta: the weights; the paper has α = 1 and, for DynamicSVR, β = 0.01; 0 leaves the constraint out.
    tau, similarity, positive_in_denominator: as in `svr`.
    radius: initial R, which the paper does not give.
    batch_size, hidden: of the predictor; shorter batches work, longer ones are refused.

    Two choices that the paper leaves open: the predictor sees similarities without passing gradients on to them (Eq.
    14 holds R constant in t), and the constraint does not move embeddings (Appendix B: it is on the predictor).
    """

    groups = True
    """Embeddings may also come as `(G, N, d)`: the mean over G of the losses of each, in one pass."""

    def __init__(
        self,
        modelling: Modelling = "dynamic",
        *,
        direction: Direction = "both",
        alpha: float = 1.0,
        beta: float = 0.01,
        tau: float = 0.07,
        similarity: Similarity = "cosine",
        positive_in_denominator: bool = True,
        radius: float = 0.1,
        learnable: bool = True,
        batch_size: int = 24,
        hidden: int = 64,
    ) -> None:
        super().__init__(tau)
        for name, value, known in (
            ("modelling", modelling, MODELLINGS),
            ("direction", direction, DIRECTIONS),
            ("similarity", similarity, SIMILARITIES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {known}, got {value!r}")
        self.direction, self.alpha, self.beta = direction, alpha, beta
        self.similarity, self.positive_in_denominator = similarity, positive_in_denominator
        self.predictor = RadiusPredictor(batch_size, hidden=hidden, initial=radius) if modelling == "dynamic" else None
        if modelling == "static":
            self.scalar = nn.Parameter(torch.tensor(float(radius)), requires_grad=learnable)
        self.mean_radius: Tensor | None = None
        """Mean R of the last batch, 0-d without gradient (SupCLAP Figure 3); None before the first."""

    def report(self) -> dict[str, Tensor]:
        """`radius`, the mean R of the last batch, 0-d; nothing before the first."""
        return {} if self.mean_radius is None else {"radius": self.mean_radius}

    def radii(self, audio: Tensor, text: Tensor) -> tuple[Tensor, ...]:
        """R for each direction in use: 0-d (static) or, of `(N, d)` or `(G, N, d)`, `(N,)` or `(G, N)` (dynamic)."""
        _check_groups(audio, text)
        directions = 2 if self.direction == "both" else 1
        with torch.autocast(audio.device.type, enabled=False):
            r = self._radius(*_stack(audio, text, self.direction))
        return r.view(directions, *audio.shape[:-1]).unbind() if r.ndim else (r,) * directions

    def _radius(self, anchor: Tensor, positive: Tensor) -> Tensor:
        """Anchors and positives as `_stack` gives them, `(G, N, d)` → R, 0-d or `(G, N)`."""
        if self.predictor is None:
            return self.scalar
        with torch.no_grad():
            groups = len(anchor) // (2 if self.direction == "both" else 1)
            scores = anchor[:groups] @ positive[:groups].mT / self.tau
            rows = scores.new_empty(len(anchor), *scores.shape[1:])
            positive_first(scores, out=rows[:groups])
            if groups < len(anchor):  # the other direction has the same similarities
                positive_first(scores.mT, out=rows[groups:])
        return self.predictor(rows)

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` L2-normalised → 0-d loss; or `(G, N, d)`, `(G, N, d)` → the mean over the G groups.

        Raises:
            ValueError: shapes that do not fit, or more rows than the predictor was made for.
            TypeError: embeddings that are not floating point.
        """
        _check_groups(audio, text)
        with torch.autocast(audio.device.type, enabled=False):
            anchor, positive = _stack(audio, text, self.direction)
            radius = self._radius(anchor, positive).to(anchor.dtype)
            self.mean_radius = radius.detach().mean()
            difference, distance = _towards(anchor, positive)
            moved = _move(anchor, difference, distance, radius)
            loss = _support_loss(moved, positive, self.tau, self.similarity, self.positive_in_denominator)
            loss = (2 * self.alpha if self.direction == "both" else self.alpha) * loss  # Eq. 6
            if self.beta:  # Eq. 9 has one L_cons: the mean over all radii in use
                loss = loss + self.beta * _outside(radius, distance.detach())
        return loss.to(audio.dtype)


def simple_reweight(
    audio: Tensor,
    text: Tensor,
    weight: float | Tensor,
    tau: float | Tensor = 0.07,
    direction: Direction = "both",
    *,
    form: Reweighting = "gradient",
) -> Tensor:
    """InfoNCE whose P⁺ is scaled by a scalar w (SupCLAP Appendix E.4); w = 1 is `info_nce` of that direction.

    −log(w P⁺) would leave every gradient as it was, so that the paper must mean something else; two readings:
    `"gradient"` scales P⁺ where it appears in the gradient (Eq. 4), whose pull becomes (w P⁺ − 1)·a⁺/τ while the push
    stays (w < 1 pulls harder). Its value is InfoNCE + (w − 1)·P⁺·s⁺ with P⁺ held constant. `"softmax"` scales the
    positive's exponential in Eq. 2, which adds log w to its logit (w > 1 pulls and pushes less; w must be positive).

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        weight: w, a number or a 0-d tensor that gradients reach.
        tau: temperature, a positive number or a 0-d tensor.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        form: `"gradient"` or `"softmax"`.

    Returns:
        0-d tensor, mean over N, in the dtype of the embeddings.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown direction or form.
    """
    check_pair(audio, text)
    check_temperature(tau)
    for name, value, known in (("direction", direction, DIRECTIONS), ("form", form, REWEIGHTINGS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}")
    with torch.autocast(audio.device.type, enabled=False):
        a, t = _widen(audio, text)
        logits = t @ a.T / tau
        w = torch.as_tensor(weight, dtype=logits.dtype, device=logits.device)
        rows = {"t2a": [logits], "a2t": [logits.T], "both": [logits, logits.T]}[direction]
        loss = logits.new_zeros(())
        for scores in rows:
            positive = scores.diagonal()
            if form == "softmax":
                scores = scores + w.log() * torch.eye(len(scores), dtype=scores.dtype, device=scores.device)
            log_p = scores.diagonal() - scores.logsumexp(dim=1)
            extra = (w - 1) * log_p.detach().exp() * positive if form == "gradient" else 0.0
            loss = loss + (extra - log_p).mean()
    return loss.to(audio.dtype)


class SimpleReweight(Tempered):
    """The Simple Reweight baseline in place of InfoNCE (SupCLAP Table 7): `simple_reweight` with a learnable w.

    w starts at 1, plain InfoNCE. Learning w is unstable by construction: both readings lower their loss without end
    by moving w alone, which is what the paper reports of it. With `form="softmax"` log w is what learns.
    """

    def __init__(
        self,
        tau: float = 0.07,
        *,
        direction: Direction = "both",
        form: Reweighting = "gradient",
        weight: float = 1.0,
    ) -> None:
        super().__init__(tau)
        if form not in REWEIGHTINGS:
            raise ValueError(f"form must be one of {REWEIGHTINGS}, got {form!r}")
        if form == "softmax" and not weight > 0:
            raise ValueError(f'weight must be positive with form="softmax", got {weight}')
        self.direction, self.form = direction, form
        self.raw = nn.Parameter(torch.tensor(math.log(weight) if form == "softmax" else float(weight)))

    @property
    def weight(self) -> Tensor:
        """w in use, 0-d."""
        return self.raw.exp() if self.form == "softmax" else self.raw

    def report(self) -> dict[str, Tensor]:
        """`weight`, w before the step."""
        return {"weight": self.weight.detach()}

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` → 0-d loss."""
        return simple_reweight(audio, text, self.weight, self.tau, self.direction, form=self.form)


def _check_groups(audio: Tensor, text: Tensor) -> None:
    """Require matching floating-point embeddings `(N, d)` or `(G, N, d)`, G and N ≥ 1; raises as `check_pair`."""
    if all(torch.is_tensor(x) and x.ndim == 3 for x in (audio, text)):
        if audio.shape != text.shape or len(audio) == 0:
            raise ValueError(
                f"audio {tuple(audio.shape)} and text {tuple(text.shape)} must have one shape, (G, N, d) with G ≥ 1"
            )
        audio, text = audio[0], text[0]
    check_pair(audio, text)


def _check_radius(radius: float | Tensor, like: Tensor, rows: torch.Size) -> Tensor:
    """R as a 0-d tensor or one of shape `rows`, of dtype and device of `like`."""
    if not torch.is_tensor(radius) and not math.isfinite(radius):
        raise ValueError(f"radius must be finite, got {radius}")
    r = torch.as_tensor(radius, dtype=like.dtype, device=like.device)
    if r.shape not in ((), rows):
        raise ValueError(f"radius must be a number, 0-d or {tuple(rows)}, one for each row; got {tuple(r.shape)}")
    return r


def _widen(*pair: Tensor) -> tuple[Tensor, ...]:
    """One dtype for all: float32 in place of the half-precision types, else the widest that came."""
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in pair) else torch.float32
    return tuple(x.to(dtype) for x in pair)


def _stack(audio: Tensor, text: Tensor, direction: Direction) -> tuple[Tensor, Tensor]:
    """`(N, d)` or `(G, N, d)` → anchors and their positives, widened, `(G, N, d)`; `(2G, N, d)` of both directions."""
    a, t = (x if x.ndim == 3 else x[None] for x in _widen(audio, text))
    if direction == "both":
        return torch.cat([t, a]), torch.cat([a, t])
    return (t, a) if direction == "t2a" else (a, t)


def _towards(anchor: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """a⁺ − t⁺ and its length, `(…, N, d)` and `(…, N)`."""
    difference = positive - anchor
    return difference, torch.linalg.vector_norm(difference, dim=-1)


def _or_inf(length: Tensor) -> Tensor:
    """Lengths, those that are rounding only (under 16 ε) replaced by infinity: what is divided by it is a constant 0.

    They are replaced *before* a division, so that no NaN is made that a mask would let through backwards.
    """
    return length.masked_fill(length <= 16 * torch.finfo(length.dtype).eps, torch.inf)


def _move(anchor: Tensor, difference: Tensor, distance: Tensor, radius: Tensor) -> Tensor:
    """t + R·û = t + c·(a − t), c = R/‖a − t‖; autograd gives Eq. 15's Jacobian I − c·(I − ûûᵀ)."""
    c = radius / _or_inf(distance)
    return torch.addcmul(anchor, c.unsqueeze(-1), difference)


def _outside(radius: Tensor, distance: Tensor) -> Tensor:
    """L_cons, 0-d: how far R, 0-d or of the shape of `distance`, lies outside 0 to ‖a⁺ − t⁺‖, on average."""
    return (F.relu(radius - distance) + F.relu(-radius)).mean()


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
    differentiate = torch.is_grad_enabled() and (query.requires_grad or positive.requires_grad)
    return _Contrast.apply(query, positive, include, differentiate)


def _blocks(groups: int, n: int) -> Iterator[tuple[slice, slice]]:
    """Groups and rows whose similarities fit into BLOCK: many whole groups at a time, or rows of one group."""
    many, step = max(1, BLOCK // n**2), max(1, BLOCK // n)
    for group in range(0, groups, many):
        for row in range(0, n, step):
            yield slice(group, group + many), slice(row, row + step)


class _Contrast(torch.autograd.Function):
    """Mean of −log softmax at the diagonals of query·keyᵀ, `(G, N, d)`, `(G, N, d)` → 0-d.

    In blocks, their gradient taken in the forward pass while a block is at hand: three matrix products in all, as many
    as autograd needs, but no N × N matrix is kept.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, include: bool, differentiate: bool) -> Tensor:
        groups, n, _ = query.shape
        gradients = (torch.empty_like(query), torch.zeros_like(key)) if differentiate else ()
        total = query.new_zeros(())
        for group, row in _blocks(groups, n):
            rows, keys = query[group, row], key[group]
            scores = torch.bmm(rows, keys.mT)  # (G, B, N) of this block
            diagonal = scores.diagonal(row.start, 1, 2)  # row b's positive is column start + b
            positive = diagonal.clone()
            diagonal.fill_(-torch.inf)
            largest = scores.amax(dim=2)
            pushes = scores.sub_(largest[..., None]).exp_()  # exp(s_j − max s), in place; 0 for the positive
            total_push = pushes.sum(dim=2)
            log_sum = largest + total_push.log()
            loss = log_sum - positive  # Eq. 6 as printed: the denominator sums over negatives only
            if include:
                # −log P⁺ = log(1 + Σ_j exp(s_j − s⁺)): exact where P⁺ rounds to 1. The default threshold of 20 would
                # cut float64 to nine digits.
                loss = F.softplus(loss, threshold=40)
            total += loss.sum()
            if differentiate:
                # P_sup of negative j is pushes_j·scale (Eq. 3); scaling rows of d costs less than rows of N.
                scale = (largest - positive - loss).exp()[..., None]
                diagonal.copy_(-total_push)  # times scale: P⁺ − 1, or −1 without the positive in the denominator
                torch.bmm(pushes, keys, out=gradients[0][group, row]).mul_(scale)
                gradients[1][group].baddbmm_(pushes.mT, scale * rows)
        ctx.save_for_backward(*gradients)
        return total / (groups * n)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        groups, n, _ = ctx.saved_tensors[0].shape
        scale = gradient / (groups * n)
        return *(scale * saved for saved in ctx.saved_tensors), None, None

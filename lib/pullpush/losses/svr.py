"""Support Vector Regularization (SupCLAP Eq. 6–9, Appendices B, D and E.4).

A support vector is the anchor moved by the semantic radius R towards its positive. Contrasting it with the same
candidates keeps the part of every negative's push that lies along the pull, and scales the perpendicular part by
1 − R/‖a⁺ − t⁺‖ (Eq. 16).

No second encoder pass is needed, and no second N × N matrix of similarities either. With c = R/‖a⁺ − t⁺‖,
t_sup·Aᵀ = (1 − c) T·Aᵀ + c A·Aᵀ = ((1 − c) T + c A)·Aᵀ: the right-hand side needs one product instead of two, two
instead of four in the backward pass, and does not subtract two large matrices where a ≈ t makes c large.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from pullpush.losses._checks import check_pair, check_temperature
from pullpush.losses.infonce import DIRECTIONS, Direction

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
        return _move(start, end, _check_radius(radius, start)).to(anchor.dtype)


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
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        radius: R, a number, a 0-d tensor or `(N,)`, which gradients reach.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"`.
        similarity: `"cosine"` or `"dot"`.
        positive_in_denominator: whether the positive is one of the candidates.

    Returns:
        0-d tensor, mean over N, in the dtype of the embeddings; bfloat16 and float16 are computed in float32, also
        under autocast. Zero for N = 1 in either reading: there is nothing to push away from.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown direction or similarity.
        TypeError: embeddings that are not floating point.
    """
    check_pair(audio, text)
    check_temperature(tau)
    for name, value, known in (("direction", direction, DIRECTIONS), ("similarity", similarity, SIMILARITIES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}")
    with torch.autocast(audio.device.type, enabled=False):  # similarities near 1 do not bear bfloat16
        a, t = _widen(audio, text)
        r = _check_radius(radius, a)
        pairs = {"t2a": [(t, a)], "a2t": [(a, t)], "both": [(t, a), (a, t)]}[direction]
        loss = a.new_zeros(())
        for anchor, positive in pairs:
            moved = _move(anchor, positive, r)
            if similarity == "cosine":
                moved = _unit(moved)
            # Dividing (N, d) rather than (N, N) by τ saves a pass over the similarities.
            loss = loss + _contrast(moved / tau, positive, positive_in_denominator)
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
    r = _check_radius(radius, distance)
    return (F.relu(r - distance) + F.relu(-r)).mean()


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

        Raises:
            ValueError: not `(N, N)`, or more rows than `batch_size`.
        """
        n = len(similarity)
        if similarity.ndim != 2 or similarity.shape[1] != n or n == 0:
            raise ValueError(f"similarity must have shape (N, N) with N ≥ 1, got {tuple(similarity.shape)}")
        if n > self.batch_size:
            raise ValueError(f"a batch of {n} does not fit a RadiusPredictor made for batch_size={self.batch_size}")
        with torch.autocast(similarity.device.type, enabled=False):
            first = self.layers[0].weight
            return self.layers(self._fill(similarity.to(first.dtype))).squeeze(1)

    def _fill(self, similarity: Tensor) -> Tensor:
        """`(N, N)` → `(N, batch_size)`: repeat each row's negatives until it is full."""
        n, missing = len(similarity), self.batch_size - len(similarity)
        if missing == 0:
            return similarity
        if n == 1:
            return F.pad(similarity, (0, missing))
        columns = 1 + torch.arange(missing, device=similarity.device) % (n - 1)
        return torch.cat([similarity, similarity[:, columns]], dim=1)


def positive_first(similarity: Tensor) -> Tensor:
    """`(N, N)` similarities with positives on the diagonal → each row's positive first, then its negatives in order."""
    n = len(similarity)
    # Rows of N + 1 start one past a diagonal element, so that the next one is in the last column.
    negatives = similarity.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)
    return torch.cat([similarity.diagonal()[:, None], negatives], dim=1)


class SVR(nn.Module):
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
        super().__init__()
        check_temperature(tau)
        for name, value, known in (
            ("modelling", modelling, MODELLINGS),
            ("direction", direction, DIRECTIONS),
            ("similarity", similarity, SIMILARITIES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {known}, got {value!r}")
        self.directions = ("t2a", "a2t") if direction == "both" else (direction,)
        self.alpha, self.beta, self.tau = alpha, beta, tau
        self.readings: dict[str, Any] = {
            "similarity": similarity,
            "positive_in_denominator": positive_in_denominator,
        }
        self.predictor = RadiusPredictor(batch_size, hidden=hidden, initial=radius) if modelling == "dynamic" else None
        if modelling == "static":
            self.scalar = nn.Parameter(torch.tensor(float(radius)), requires_grad=learnable)
        self.mean_radius: Tensor | None = None
        """Mean R of the last batch, 0-d without gradient (SupCLAP Figure 3); None before the first."""

    def report(self) -> dict[str, Tensor]:
        """`radius`, the mean R of the last batch, 0-d; nothing before the first."""
        return {} if self.mean_radius is None else {"radius": self.mean_radius}

    def radii(self, audio: Tensor, text: Tensor) -> tuple[Tensor, ...]:
        """R for each direction in use: 0-d (static) or `(N,)` (dynamic)."""
        if self.predictor is None:
            return (self.scalar,) * len(self.directions)
        with torch.no_grad(), torch.autocast(audio.device.type, enabled=False):
            a, t = _widen(audio, text)
            scores = t @ a.T / self.tau
        rows = {"t2a": scores, "a2t": scores.T}
        return tuple(self.predictor(positive_first(rows[direction])) for direction in self.directions)

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` L2-normalised → 0-d loss."""
        check_pair(audio, text)
        radii = self.radii(audio, text)
        self.mean_radius = torch.stack([radius.detach().mean() for radius in radii]).mean()
        terms = [
            svr(audio, text, radius, self.tau, direction, **self.readings)
            for direction, radius in zip(self.directions, radii, strict=True)
        ]
        loss = self.alpha * sum(terms)  # Eq. 6
        if self.beta:
            a, t = _widen(audio.detach(), text.detach())
            distance = (a - t).norm(dim=1)
            # Eq. 9 has one L_cons: the mean over all radii in use.
            constraint = sum(radius_constraint(radius, distance) for radius in radii) / len(radii)
            loss = loss + self.beta * constraint.to(loss.dtype)
        return loss


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


class SimpleReweight(nn.Module):
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
        super().__init__()
        check_temperature(tau)
        if form not in REWEIGHTINGS:
            raise ValueError(f"form must be one of {REWEIGHTINGS}, got {form!r}")
        if form == "softmax" and not weight > 0:
            raise ValueError(f'weight must be positive with form="softmax", got {weight}')
        self.tau, self.direction, self.form = tau, direction, form
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


def _check_radius(radius: float | Tensor, like: Tensor) -> Tensor:
    """R as a 0-d or `(N,)` tensor, N = len(like), of dtype and device of `like`."""
    if not torch.is_tensor(radius) and not math.isfinite(radius):
        raise ValueError(f"radius must be finite, got {radius}")
    r = torch.as_tensor(radius, dtype=like.dtype, device=like.device)
    if r.shape not in ((), (len(like),)):
        raise ValueError(f"radius must be a number, 0-d or ({len(like)},), one for each row; got {tuple(r.shape)}")
    return r


def _widen(*pair: Tensor) -> tuple[Tensor, ...]:
    """One dtype for all: float32 in place of the half-precision types, else the widest that came."""
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in pair) else torch.float32
    return tuple(x.to(dtype) for x in pair)


def _unit(x: Tensor) -> Tensor:
    """Rows scaled to length 1; rows that are rounding only (under 16 ε) become constant zeros.

    The lengths are replaced *before* the division, so that no NaN is made that a mask would let through backwards.
    """
    norm = x.norm(dim=-1, keepdim=True)
    short = norm <= 16 * torch.finfo(x.dtype).eps
    return torch.where(short, 0.0, x / torch.where(short, 1.0, norm))


def _move(anchor: Tensor, positive: Tensor, radius: Tensor) -> Tensor:
    """t + R·û; autograd gives Eq. 15's Jacobian I − R/‖a − t‖·(I − ûûᵀ)."""
    return anchor + radius.unsqueeze(-1) * _unit(positive - anchor)


def _contrast(query: Tensor, key: Tensor, include: bool) -> Tensor:
    """Mean over rows of −log softmax at the diagonal of query·keyᵀ, `(N, d)`, `(N, d)` → 0-d."""
    if len(query) == 1:
        return (query * key).sum() * 0  # no negatives: zero loss and gradient, even without the positive
    differentiate = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    return _Contrast.apply(query, key, include, differentiate)


class _Contrast(torch.autograd.Function):
    """The contrast in blocks of rows, its gradient taken in the forward pass while a block is at hand.

    Three matrix products in all, as many as autograd needs, but no N × N matrix is kept.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, include: bool, differentiate: bool) -> Tensor:
        n = len(query)
        gradients = (torch.empty_like(query), torch.zeros_like(key)) if differentiate else ()
        total = query.new_zeros(())
        step = max(1, BLOCK // n)
        for start in range(0, n, step):
            rows = query[start : start + step]
            scores = rows @ key.T  # (B, N)
            diagonal = scores.diagonal(offset=start)  # row b's positive is column start + b
            positive = diagonal.clone()
            diagonal.fill_(-torch.inf)
            largest = scores.amax(dim=1)
            pushes = scores.sub_(largest[:, None]).exp_()  # exp(s_j − max s), in place; 0 for the positive
            total_push = pushes.sum(dim=1)
            log_sum = largest + total_push.log()
            loss = log_sum - positive  # Eq. 6 as printed: the denominator sums over negatives only
            if include:
                # −log P⁺ = log(1 + Σ_j exp(s_j − s⁺)): exact where P⁺ rounds to 1. The default threshold of 20 would
                # cut float64 to nine digits.
                loss = F.softplus(loss, threshold=40)
            total += loss.sum()
            if differentiate:
                # P_sup of negative j is pushes_j·scale (Eq. 3); scaling rows of d costs less than rows of N.
                scale = (largest - positive - loss).exp()[:, None]
                diagonal.copy_(-total_push)  # times scale: P⁺ − 1, or −1 without the positive in the denominator
                torch.mm(pushes, key, out=gradients[0][start : start + step]).mul_(scale)
                gradients[1].addmm_(pushes.T, scale * rows)
        ctx.save_for_backward(*gradients)
        return total / n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradient / len(ctx.saved_tensors[0])
        return *(scale * saved for saved in ctx.saved_tensors), None, None

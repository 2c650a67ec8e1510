"""Consistency across languages (ATRI §3.2, §5.4 and Appendix C).

What a model ends with: `gap`, `distance` and `mean_rank_variance` measure how far the texts of one clip lie, and rank,
apart. Why: `direction_error` is the angle of Figure 2, and `weight_errors` trains a small model twice, on all languages
and on some, and gives both sides of the bound on how far the two come apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Direction = Literal["t2a", "a2t"]
Reading = Literal["data", "printed"]
READINGS = ("data", "printed")
SAMPLING = ("random", "pair", "all")


def gap(english: Tensor, other: Tensor, *, vector: bool = False, present: Tensor | None = None) -> Tensor:
    """Distance between the centroids of two languages (ATRI Eq. 14).

    Eq. 14 is a vector and Table 2 a number: the number here is the vector's Euclidean norm.

    Args:
        english: `(N, d)` text embeddings.
        other: `(N, d)` embeddings of the same texts in another language, or `(N, K, d)` in K of them.
        vector: return the vector of Eq. 14 rather than its norm.
        present: `(N,)` or `(N, K)` boolean, False where a translation is missing: that text then counts in neither
            centroid. None: all are there.

    Returns:
        0-d, or `(K,)`; with `vector` `(d,)`, or `(K, d)`. Never more than `distance`.

    Raises:
        ValueError: shapes that do not match, or a language without any text.
    """
    centroid = _mean(_differences(english, other), present)
    return centroid if vector else centroid.norm(dim=-1)


def distance(english: Tensor, other: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Mean distance between each text and its translation (ATRI Eq. 15).

    Args:
        english: `(N, d)` text embeddings.
        other: `(N, d)`, or `(N, K, d)` for K languages.
        present: as for `gap`.

    Returns:
        0-d, or `(K,)`.

    Raises:
        ValueError: shapes that do not match, or a language without any text.
    """
    lengths = _differences(english, other).norm(dim=-1, keepdim=True)
    return _mean(lengths, present)[..., 0]


def language_ranks(
    audio: Tensor,
    texts: Tensor,
    *,
    direction: Direction = "t2a",
    clip: Tensor | None = None,
) -> Tensor:
    """Rank of the right item for each text in each language, from 1, ties against the system.

    `"t2a"`: text i in language k is the query, the M clips are the items. `"a2t"`: the clip is the query, the texts of
    language k are the items; other captions of the same clip are not counted before it.

    Args:
        audio: `(M, d)` L2-normalised.
        texts: `(N, K, d)` L2-normalised.
        direction: which side asks.
        clip: `(N,)` int64, the clip that each text belongs to; None: text i belongs to clip i.

    Returns:
        `(N, K)` int64.

    Raises:
        ValueError: wrong shapes, a clip number out of range, NaN, an unknown direction.
    """
    if direction not in ("t2a", "a2t"):
        raise ValueError(f"direction must be 't2a' or 'a2t', got {direction!r}")
    if texts.ndim != 3 or audio.ndim != 2 or audio.shape[1] != texts.shape[2]:
        raise ValueError(f"need audio (M, d) and texts (N, K, d), got {tuple(audio.shape)} and {tuple(texts.shape)}")
    if clip is None:
        if len(audio) != len(texts):
            raise ValueError(f"{len(texts)} texts for {len(audio)} clips: say which clip each belongs to by `clip`")
        clip = torch.arange(len(texts), device=texts.device)
    if clip.shape != texts.shape[:1] or not ((clip >= 0) & (clip < len(audio))).all():
        raise ValueError(f"clip must be (N,) = ({len(texts)},) numbers of clips below {len(audio)}")
    return torch.stack([_ranks(audio, texts[:, k], clip, direction) for k in range(texts.shape[1])], dim=1)


def rank_variance(ranks: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Variance of each item's rank over the languages, the inner mean of ATRI Eq. 16.

    Args:
        ranks: `(N, K)` ranks, counted from 0 or 1 alike.
        present: `(N, K)` boolean, False where there is no translation; None: all are there.

    Returns:
        `(N,)` float64, to bootstrap over items. An item with one language has variance 0.

    Raises:
        ValueError: wrong shapes, or items without any language (named).
    """
    if ranks.ndim != 2 or 0 in ranks.shape:
        raise ValueError(f"ranks must have shape (N, K) with N, K ≥ 1, got {tuple(ranks.shape)}")
    there = torch.ones_like(ranks, dtype=torch.bool) if present is None else present
    if there.shape != ranks.shape or there.dtype != torch.bool:
        raise ValueError(f"present must be boolean (N, K) = {tuple(ranks.shape)}, got {tuple(there.shape)}")
    count = there.sum(dim=1)
    if not count.all():
        raise ValueError(f"items {(count == 0).nonzero().flatten().tolist()[:10]} have no language: leave them out")
    values = torch.where(there, ranks.double(), 0)
    mean = values.sum(dim=1) / count
    return torch.where(there, (values - mean[:, None]).square(), 0).sum(dim=1) / count


def mean_rank_variance(ranks: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Mean rank variance, MRV (ATRI Eq. 16); 0 when every item has one rank in all languages.

    Eq. 16 subtracts a mean rank with index j from item i's ranks; the text below it defines the mean of item i, which
    is what is subtracted here. Where translations are missing each item averages over those it has, and every item
    counts once.

    Args:
        ranks: `(N, K)`, see `language_ranks`.
        present: `(N, K)` boolean, see `rank_variance`.

    Returns:
        0-d float64.
    """
    return rank_variance(ranks, present=present).mean()


def angle(one: Tensor, other: Tensor) -> Tensor:
    """Angle between vectors along the last dimension, in degrees in [0, 180]; NaN where one of them is zero.

    By the arc tangent of the half angle, which keeps small angles that the arc cosine rounds away.
    """
    u, v = F.normalize(one, dim=-1, eps=0), F.normalize(other, dim=-1, eps=0)  # 0/0: a zero vector has no direction
    return torch.rad2deg(2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1)))


def direction_error(audio: Tensor, texts: Tensor, taken: Tensor) -> Tensor:
    """Modality alignment direction error (ATRI §3.2, Figure 2), in degrees.

    The angle at the clip between the way to the mean of the texts taken and the way to the mean of all K. As in the
    paper the mean is not normalised again.

    Args:
        audio: `(N, d)` embeddings.
        texts: `(N, K, d)` embeddings.
        taken: `(N, K)` boolean, the languages that training takes of each clip: at least one.

    Returns:
        `(N,)`; 0 where all are taken, NaN where a clip lies on one of the means.

    Raises:
        ValueError: shapes that do not match, or a clip of which nothing is taken.
    """
    if texts.ndim != 3 or audio.shape != texts[:, 0].shape or taken.shape != texts.shape[:2]:
        raise ValueError(
            "need audio (N, d), texts (N, K, d) and taken (N, K), got "
            f"{tuple(audio.shape)}, {tuple(texts.shape)} and {tuple(taken.shape)}"
        )
    if not taken.any(dim=1).all():
        raise ValueError("every clip needs at least one language that is taken")
    weight = taken.to(texts.dtype) / taken.sum(dim=1, keepdim=True)
    return angle((texts * weight[..., None]).sum(dim=1) - audio, texts.mean(dim=1) - audio)


Embed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Weights `(P,)` and numbers of clips `(B,)` → audio `(B, d)`, texts `(B, K, d)`; torch functions only."""


class Step(NamedTuple):
    """One optimiser step: numbers of its clips `(B,)`, and the languages taken of each, `(B, K)` boolean."""

    items: Tensor
    taken: Tensor


class WeightError(NamedTuple):
    """Both sides of ATRI's weight error bound after an epoch of T steps; w takes all languages, w' those sampled.

    epoch: from 1.
    left: ‖w − w'‖.
    right: Eq. 21 of the appendix, j from 0, from the measured error at the epoch's start.
    main_text: Eq. 6 as printed, j from 1: it leaves out the last step's own error and need not hold.
    stepwise: the same bound with each step's own growth and distribution error (inequality 3 of Eq. 18, unrolled).
    expanded: Eq. 21 from its own value at the epoch's start instead of the measured one (§3.2, second result).
    growth: a of Eq. 8; distribution_error: Σ|p − p'|; both the epoch's largest, for Eq. 21 has one for all steps.
    g_max: the epoch's largest Eq. 7.
    """

    epoch: int
    left: float
    right: float
    main_text: float
    stepwise: float
    expanded: float
    growth: float
    distribution_error: float
    g_max: float


class MomentumError(NamedTuple):
    """Both sides of the bound on Adam's first momentum after a step (ATRI Eq. 28).

    left: ‖m − m'‖. right: β₁‖m − m'‖ of the step before + (1−β₁)(Σ p'λ ‖w − w'‖ + g_max Σ|p − p'|).
    printed: Eq. 28 as it ends, where the first term has become ‖w − w'‖, which nothing before it gives: need not hold.
    weights: ‖w − w'‖ after the step.
    """

    step: int
    left: float
    right: float
    printed: float
    weights: float


def language_plan(
    clips: int, languages: int, *, sampling: str, epochs: int, batch_size: int, seed: int = 0
) -> list[list[Step]]:
    """What each step of each epoch takes, as `PairDataset` samples: language 0 is the main one (English).

    Args:
        clips: N. languages: K.
        sampling: "random", one language a clip (ML-CLAP); "pair", the main and one other (CACL); "all" (KCL).
        epochs, batch_size: the last batch may be short.
        seed: of the order, the same for every sampling, and of the languages.

    Raises:
        ValueError: an unknown sampling, or "pair" with one language.
    """
    if sampling not in SAMPLING:
        raise ValueError(f"sampling must be one of {SAMPLING}, got {sampling!r}")
    if sampling == "pair" and languages < 2:
        raise ValueError("sampling 'pair' needs at least two languages")
    order, draw = (torch.Generator().manual_seed(2 * seed + offset) for offset in (0, 1))
    plan = []
    for _ in range(epochs):
        taken = torch.ones(clips, languages, dtype=torch.bool)
        if sampling != "all":
            first = int(sampling == "pair")
            chosen = torch.randint(first, languages, (clips,), generator=draw)
            taken = F.one_hot(chosen, languages).bool()
            taken[:, :first] = True
        batches = torch.randperm(clips, generator=order).split(batch_size)
        plan.append([Step(items, taken[items]) for items in batches])
    return plan


def log_probability(audio: Tensor, texts: Tensor, tau: float = 0.07, *, reading: Reading = "data") -> Tensor:
    """log p(a_i, t_ik) of every matching pair, in one of two readings.

    "printed" is Eq. 1: one softmax over the N·K matching pairs. No mismatched pair is in it, and weighted with p itself
    (Eq. 3, Eq. 17) its gradient is Σ p ∇log p = ∇Σ p = 0: the run on all languages would never move. "data" is what the
    losses do: the mean of the two log-softmaxes of Eq. 10 and 11, so that its mean over all pairs is −`losses.kcl`.

    Args:
        audio: `(N, d)` L2-normalised.
        texts: `(N, K, d)` L2-normalised.
        tau: temperature.
        reading: "data" or "printed".

    Returns:
        `(N, K)`.

    Raises:
        ValueError: an unknown reading.
    """
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {READINGS}, got {reading!r}")
    logits = torch.einsum("id,jkd->ikj", audio, texts) / tau  # (N, K, N)
    positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K)
    if reading == "printed":
        return positive - positive.logsumexp(dim=(0, 1))  # Eq. 1
    return positive - (logits.logsumexp(dim=2) + logits.logsumexp(dim=0).T) / 2  # Eq. 10 and 11


def pair_distribution(log_p: Tensor, taken: Tensor, *, reading: Reading = "data") -> Tensor:
    """How much each pair weighs in a step's gradient: p for all pairs taken, else p'_e.

    "data": every pair taken alike. "printed": Eq. 1 and 4, in proportion to the model's own probability.

    Args:
        log_p: `(N, K)`, see `log_probability`. taken: `(N, K)` boolean.

    Returns:
        `(N, K)`, sums to 1, zero where not taken.
    """
    weight = taken.to(log_p.dtype) if reading == "data" else (log_p - log_p[taken].max()).exp() * taken
    return weight / weight.sum()


def weight_error_bound(
    previous: float, g_max: Tensor, *, growth: float, distribution_error: float, rate: float, first: int = 0
) -> float:
    """The right side of ATRI's bound over one epoch: aᵀ·previous + η D Σ_j aʲ g_max(w_{eT−1−j}).

    Args:
        previous: ‖w − w'‖ before the epoch.
        g_max: `(T,)` in the order of the steps: Eq. 7 at the weights before each.
        growth: a. distribution_error: D = Σ|p − p'|. rate: η.
        first: least j of the sum: 0 in Eq. 21, which the proof gives; 1 in Eq. 6 of the main text.
    """
    powers = torch.tensor(growth, dtype=torch.float64) ** torch.arange(len(g_max) + 1)  # inf, not OverflowError
    total = (powers[:-1] * g_max.double().cpu().flip(0))[first:].sum()
    # Nothing grown is nothing, even by an infinite power.
    inherited = float(powers[-1] * previous) if previous else 0.0
    return inherited + (float(rate * distribution_error * total) if distribution_error else 0.0)


def weight_errors(
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    tau: float = 0.07,
    reading: Reading = "data",
    own: bool = False,
    lipschitz: float | str = "secant",
) -> list[WeightError]:
    """Train twice by SGD from one start, on all languages and on those of the plan, and compare (ATRI Eq. 6–8, 17–21).

    Each step climbs: w ← w + η Σ p ∇log p. (Eq. 17 prints a minus, which would lower the probability that Eq. 3 says to
    raise; the bound is the same.) The gradient of every pair is computed: memory is B·K·P numbers.

    Where the paper leaves a choice:

    * `reading`: what p and log p are, see `log_probability` and `pair_distribution`.
    * `own`: the proof gives both runs one log p (Eq. 17), and so does False. True lets the sampled run climb its own
      log p', whose denominators hold only what it took (Eq. 5), mixed languages as ML-CLAP and CACL train; the bound
      has no term for the difference. Every clip of a step must then take equally many languages.
    * `lipschitz`: the proof needs no more of λ than ‖∇log p(w') − ∇log p(w)‖ ≤ λ‖w' − w‖ for the two weights of a step.
      "secant" is the least such λ, so that every other choice gives a looser bound; "segment" is the greatest curvature
      (spectral norm of the Hessian) at five points from w to w', nearer to a Lipschitz constant; or give a number.

    Args:
        embed: the model, see `Embed`. Use float64: the left side is a small difference.
        start: `(P,)` weights.
        plan: epochs of steps, see `language_plan`.
        rate: η, the learning rate.
        tau: temperature.

    Returns:
        One row an epoch; `pandas.DataFrame(rows)` is a table.

    Raises:
        ValueError: an unknown reading or lipschitz.
    """
    full, sampled, expanded, rows = start.detach(), start.detach(), 0.0, []
    for number, epoch in enumerate(plan, start=1):
        before = stepwise = float((full - sampled).norm())
        growths, errors, largest = [], [], []
        for step in epoch:
            seen = _compare(embed, full, sampled, step, tau=tau, reading=reading, own=own, lipschitz=lipschitz)
            growths.append(1 + rate * seen.slope)  # Eq. 8
            errors.append(seen.distribution_error)
            largest.append(seen.g_max)
            stepwise = growths[-1] * stepwise + rate * errors[-1] * largest[-1]  # Eq. 18, inequality 3
            full, sampled = full + rate * seen.gradient, sampled + rate * seen.sampled_gradient
        constants = {"growth": max(growths), "distribution_error": max(errors), "rate": rate}
        g_max = torch.tensor(largest, dtype=torch.float64)
        expanded = weight_error_bound(expanded, g_max, **constants)
        rows.append(
            WeightError(
                epoch=number,
                left=float((full - sampled).norm()),
                right=weight_error_bound(before, g_max, **constants),
                main_text=weight_error_bound(before, g_max, **constants, first=1),
                stepwise=stepwise,
                expanded=expanded,
                growth=constants["growth"],
                distribution_error=constants["distribution_error"],
                g_max=max(largest),
            )
        )
    return rows


def momentum_errors(
    embed: Embed,
    start: Tensor,
    plan: Sequence[Sequence[Step]],
    *,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    tau: float = 0.07,
    reading: Reading = "data",
    own: bool = False,
    lipschitz: float | str = "secant",
) -> list[MomentumError]:
    """Train twice by Adam and compare the momenta (ATRI Appendix C.1, Eq. 22–28).

    Args: as for `weight_errors`; betas: β₁, β₂; eps: added to √v̂, which Eq. 27 leaves bare.

    Returns:
        One row a step.
    """
    runs = [_Adam(start.detach(), rate, betas, eps) for _ in range(2)]
    rows: list[MomentumError] = []
    for number, step in enumerate((step for epoch in plan for step in epoch), start=1):
        full, sampled = runs
        seen = _compare(
            embed, full.weights, sampled.weights, step, tau=tau, reading=reading, own=own, lipschitz=lipschitz
        )
        apart, before = float((full.weights - sampled.weights).norm()), float((full.m - sampled.m).norm())
        source = (1 - betas[0]) * seen.g_max * seen.distribution_error
        drift = (1 - betas[0]) * seen.slope * apart
        full.climb(seen.gradient)
        sampled.climb(seen.sampled_gradient)
        rows.append(
            MomentumError(
                step=number,
                left=float((full.m - sampled.m).norm()),
                right=betas[0] * before + drift + source,
                printed=apart + drift + source,
                weights=float((full.weights - sampled.weights).norm()),
            )
        )
    return rows


class _Seen(NamedTuple):
    """One step of both runs: their gradients `(P,)`, Σ p'λ, Σ|p − p'| and Eq. 7."""

    gradient: Tensor
    sampled_gradient: Tensor
    slope: float
    distribution_error: float
    g_max: float


def _compare(
    embed: Embed,
    full: Tensor,
    sampled: Tensor,
    step: Step,
    *,
    tau: float,
    reading: Reading,
    own: bool,
    lipschitz: float | str,
) -> _Seen:
    """What the bound needs of one step, at the weights of both runs before it."""

    def log_p(weights: Tensor) -> Tensor:
        return log_probability(*embed(weights, step.items), tau, reading=reading).flatten()

    def own_log_p(weights: Tensor) -> Tensor:
        audio, texts = embed(weights, step.items)
        texts = texts[slots].unflatten(0, (len(audio), -1))  # (B, languages taken of each, d)
        return log_probability(audio, texts, tau, reading=reading).flatten()

    slots = step.taken.nonzero(as_tuple=True)
    everything = torch.ones_like(step.taken)
    with torch.no_grad():
        p = pair_distribution(log_p(full).view_as(everything), everything, reading=reading).flatten()
        q = pair_distribution(log_p(sampled).view_as(everything), step.taken, reading=reading).flatten()
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (B·K, P)
    climb = q[step.taken.flatten()] @ torch.func.jacrev(own_log_p)(sampled) if own else q @ moved
    slope = q @ _lipschitz(log_p, full, sampled, moved - gradients, lipschitz)
    return _Seen(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(slope),
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )


def _lipschitz(
    log_p: Callable[[Tensor], Tensor], full: Tensor, sampled: Tensor, change: Tensor, kind: float | str
) -> Tensor:
    """λ of every pair, `(B·K,)`; `change` is what its gradient changed by, `(B·K, P)`."""
    if not isinstance(kind, str):
        return change.new_full(change.shape[:1], float(kind))
    if kind == "secant":
        apart = (sampled - full).norm()
        return change.norm(dim=1) / apart if apart > 0 else change.new_zeros(len(change))
    if kind != "segment":
        raise ValueError(f"lipschitz must be 'secant', 'segment' or a number, got {kind!r}")
    curvature = torch.func.hessian(log_p)  # (B·K, P, P)
    points = [torch.lerp(full, sampled, at) for at in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return torch.stack([torch.linalg.eigvalsh(curvature(point)).abs().amax(dim=1) for point in points]).amax(dim=0)


class _Adam:
    """Eq. 22–27, climbing."""

    def __init__(self, weights: Tensor, rate: float, betas: tuple[float, float], eps: float) -> None:
        self.weights, self.rate, self.betas, self.eps = weights, rate, betas, eps
        self.m, self.v, self.steps = torch.zeros_like(weights), torch.zeros_like(weights), 0

    def climb(self, gradient: Tensor) -> None:
        """One step along the gradient `(P,)`."""
        (one, two), self.steps = self.betas, self.steps + 1
        self.m = one * self.m + (1 - one) * gradient  # Eq. 23
        self.v = two * self.v + (1 - two) * gradient.square()  # Eq. 24
        m, v = self.m / (1 - one**self.steps), self.v / (1 - two**self.steps)  # Eq. 25–26
        self.weights = self.weights + self.rate * m / (v.sqrt() + self.eps)  # Eq. 27


def _mean(values: Tensor, present: Tensor | None) -> Tensor:
    """Mean over the first dimension of `(N, …, c)`, of those present `(N, …)`."""
    if present is None:
        return values.mean(dim=0)
    if present.dtype != torch.bool or present.shape != values.shape[:-1]:
        raise ValueError(
            f"present must be boolean {tuple(values.shape[:-1])}, got {present.dtype} {tuple(present.shape)}"
        )
    count = present.sum(dim=0)
    if not count.all():
        raise ValueError("a language has no text at all: leave it out and say so")
    return torch.where(present[..., None], values, 0).sum(dim=0) / count[..., None]


def _differences(english: Tensor, other: Tensor) -> Tensor:
    """english − other, `(N, d)` or `(N, K, d)`."""
    if other.ndim == 3 and english.ndim == 2:
        english = english[:, None].expand_as(other) if english.shape == other[:, 0].shape else english
    if english.shape != other.shape or english.ndim not in (2, 3) or len(english) == 0:
        raise ValueError(
            f"need english (N, d) and other (N, d) or (N, K, d), got {tuple(english.shape)} and {tuple(other.shape)}"
        )
    return english - other


def _ranks(audio: Tensor, text: Tensor, clip: Tensor, direction: Direction) -> Tensor:
    """Ranks for one language: audio `(M, d)`, text `(N, d)` → `(N,)`."""
    similarity = text @ audio.T  # (N, M)
    if torch.isnan(similarity).any():
        raise ValueError("similarity is NaN: check the embeddings that it comes from")
    right = similarity.gather(1, clip[:, None])  # (N, 1)
    if direction == "t2a":
        return (similarity >= right).sum(dim=1)  # the right clip counts itself: ranks start at 1
    others = similarity[:, clip].T.masked_fill(clip[:, None] == clip[None], -torch.inf)  # (N, N): of other clips
    return (others >= right).sum(dim=1) + 1

"""ATRI's bound on the distance between the weights of a run on all languages and of one on some (Eq. 1–8, 17–28), in
general and on a model that is small enough to compute all of it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import World
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.parallel import side_by_side
from pullpush.studies.consistency.data import Step, language_plan

Embed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Weights `(P,)` and numbers of clips `(B,)` → audio `(B, d)`, texts `(B, K, d)`; torch functions only."""
RATE, TAU = 0.1, 0.3  # of the small model's runs
TEXT_SHARE = 1 / 3  # of CACL's loss: English with the other text (Eq. 12)
ERRING = ("random", "pair")  # of SAMPLINGS: a run that takes all languages is the one that others are compared with


def log_probability(audio: Tensor, texts: Tensor, tau: float = 0.07) -> Tensor:
    """log p(a_i, t_ik) `(N, K)` of every matching pair, as the losses have it: the mean of the two log-softmaxes of
    Eq. 10 and 11, so that its mean over all pairs is −`losses.kcl`; `(N, d)`, `(N, K, d)` L2-normalised.
    """
    logits = torch.einsum("id,jkd->ikj", audio, texts) / tau  # (N, K, N)
    positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K)
    return positive - (logits.logsumexp(dim=2) + logits.logsumexp(dim=0).T) / 2


def weight_error_bound(
    previous: float, g_max: Tensor, *, growth: float, distribution_error: float, rate: float, first: int = 0
) -> float:
    """The right side of ATRI's bound over one epoch: aᵀ·previous + η D Σ_j aʲ g_max(w_{eT−1−j}).

    previous: ‖w − w'‖ before the epoch; g_max: `(T,)`, Eq. 7 before each step; growth: a; distribution_error: D; rate:
    η; first: least j of the sum: 0 in Eq. 21, which the proof gives; 1 in Eq. 6 of the main text.

    Example:
        >>> weight_error_bound(1.0, torch.tensor([3.0]), growth=2.0, distribution_error=0.5, rate=0.1)
        2.15
    """
    powers = torch.tensor(growth, dtype=torch.float64) ** torch.arange(len(g_max) + 1)  # inf, not OverflowError
    total = (powers[:-1] * g_max.double().cpu().flip(0))[first:].sum()
    # Nothing grown is nothing, even by an infinite power.
    inherited = float(powers[-1] * previous) if previous else 0.0
    return inherited + (float(rate * distribution_error * total) if distribution_error else 0.0)


class Comparison(NamedTuple):
    """One step of both runs: their gradients `(P,)`, Σ p'λ, Σ|p − p'| and Eq. 7."""

    gradient: Tensor
    sampled_gradient: Tensor
    slope: float
    distribution_error: float
    g_max: float


def compare(
    embed: Embed,
    full: Tensor,
    sampled: Tensor,
    step: Step,
    *,
    tau: float = 0.07,
    sampled_loss: bool = False,
    lipschitz: float | None = None,
    text_share: float = 0.0,
) -> Comparison:
    """What the bound needs of one step, at the weights of both runs before it `(P,)`. Memory is B·K·P numbers.

    Every pair that a run takes weighs the same: 1/BK in p, and 1 over the number of pairs taken in p'.

    Args:
        embed: the model; in float64, for the left side of the bound is a small difference.
        sampled_loss: the proof gives both runs the same log p (Eq. 17), and so does False. True lets the sampled run
            climb a log p' whose denominators hold only what it took (Eq. 5), as ML-CLAP and CACL train; the bound has
            no term for the difference. Every clip of a step must then take equally many languages.
        lipschitz: λ, for which ‖∇log p(w') − ∇log p(w)‖ ≤ λ‖w' − w‖: None is the least that the proof can do with, the
            secant of each pair; any larger number gives a looser bound.
        text_share: of p' that goes to pairs of the main text with the other one (CACL, Eq. 12), to which p gives none.
    """

    def of_texts(texts: Tensor) -> Tensor:
        """log p of each clip's main text with its other one, `(B,)`; nothing where they have no weight."""
        if not text_share:
            return texts.new_zeros(0)
        other = texts[:, 1:][step.taken[:, 1:]]
        return log_probability(texts[:, 0], other[:, None], tau).flatten()

    def log_p(weights: Tensor, *, of_taken: bool = False) -> Tensor:
        audio, texts = embed(weights, step.items)
        chosen = texts[step.taken].unflatten(0, (len(audio), -1)) if of_taken else texts  # (B, languages, d)
        return torch.cat([log_probability(audio, chosen, tau).flatten(), of_texts(texts)])

    taken = step.taken.to(full.dtype).flatten()
    between = taken.new_ones(len(step.items) if text_share else 0) / len(step.items)
    p = torch.cat([torch.ones_like(taken) / len(taken), 0 * between])
    q = torch.cat([(1 - text_share) * taken / taken.sum(), text_share * between])
    gradients, moved = torch.func.jacrev(log_p)(full), torch.func.jacrev(log_p)(sampled)  # (pairs, P)
    climb = q[q > 0] @ torch.func.jacrev(partial(log_p, of_taken=True))(sampled) if sampled_loss else q @ moved
    apart = (sampled - full).norm()
    secants = (moved - gradients).norm(dim=1) / apart if apart > 0 else torch.zeros_like(q)
    return Comparison(
        gradient=p @ gradients,
        sampled_gradient=climb,
        slope=float(q @ secants) if lipschitz is None else lipschitz,  # p' sums to one
        distribution_error=float((p - q).abs().sum()),
        g_max=float(gradients.norm(dim=1).max()),  # Eq. 7
    )


class WeightError(NamedTuple):
    """Both sides of ATRI's weight error bound after an epoch of T steps; w takes all languages, w' those sampled.

    left: ‖w − w'‖. right: Eq. 21 of the appendix, j from 0, from the measured error at the epoch's start. main_text:
    Eq. 6 as printed, j from 1: it leaves out the last step's own error and need not hold. stepwise: the same bound with
    each step's own growth and distribution error (inequality 3 of Eq. 18, unrolled). expanded: Eq. 21 from its own
    value at the epoch's start instead of the measured one (§3.2, second result). growth: a of Eq. 8;
    distribution_error: Σ|p − p'|; both the epoch's largest, for Eq. 21 has one for all steps. g_max: its largest Eq. 7.
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


def weight_errors(
    embed: Embed, start: Tensor, plan: Sequence[Sequence[Step]], *, rate: float, **choices: Any
) -> list[WeightError]:
    """Train twice by SGD from the same weights, on all languages and on those of the plan: a row an epoch.

    Each step climbs: w ← w + η Σ p ∇log p. (Eq. 17 prints a minus, which would lower the probability that Eq. 3 says to
    raise; the bound is the same.) start: `(P,)` weights; plan: see `language_plan`; rate: η; choices: see `compare`.
    """
    full, sampled, expanded, rows = start.detach(), start.detach(), 0.0, []
    for number, epoch in enumerate(plan, start=1):
        before = stepwise = float((full - sampled).norm())
        growths, errors, largest = [], [], []
        for step in epoch:
            seen = compare(embed, full, sampled, step, **choices)
            growths.append(1 + rate * seen.slope)  # Eq. 8
            errors.append(seen.distribution_error)
            largest.append(seen.g_max)
            stepwise = growths[-1] * stepwise + rate * errors[-1] * largest[-1]  # Eq. 18, inequality 3
            full, sampled = full + rate * seen.gradient, sampled + rate * seen.sampled_gradient
        constants = {"growth": max(growths), "distribution_error": max(errors)}
        g_max = torch.tensor(largest, dtype=torch.float64)
        expanded = weight_error_bound(expanded, g_max, rate=rate, **constants)
        right, main = (weight_error_bound(before, g_max, rate=rate, **constants, first=j) for j in (0, 1))
        left = float((full - sampled).norm())
        rows.append(WeightError(number, left, right, main, stepwise, expanded, **constants, g_max=max(largest)))
    return rows


class MomentumError(NamedTuple):
    """Both sides of the bound on Adam's first momentum after a step (ATRI Eq. 28).

    left: ‖m − m'‖. right: β₁‖m − m'‖ of the step before + (1−β₁)(Σ p'λ ‖w − w'‖ + g_max Σ|p − p'|). printed: Eq. 28 as
    it ends, where the first term has become ‖w − w'‖, which nothing before it gives: need not hold. weights: ‖w − w'‖.
    """

    step: int
    left: float
    right: float
    printed: float
    weights: float


def momentum_errors(
    embed: Embed, start: Tensor, plan: Sequence[Sequence[Step]], *, rate: float, **choices: Any
) -> list[MomentumError]:
    """Train twice by Adam and compare the momenta: a row a step (ATRI Appendix C.1, Eq. 22–28); see `weight_errors`."""
    weights = start.detach().expand(2, -1).clone().requires_grad_()  # of both runs
    adam = torch.optim.Adam([weights], lr=rate, maximize=True)  # Eq. 22–27
    beta, _ = adam.defaults["betas"]
    rows: list[MomentumError] = []
    momenta = apart = 0.0  # how far those of both runs are from each other, and their weights
    for number, step in enumerate((step for epoch in plan for step in epoch), start=1):
        seen = compare(embed, weights[0].detach(), weights[1].detach(), step, **choices)
        added = (1 - beta) * (seen.slope * apart + seen.g_max * seen.distribution_error)
        bounds = beta * momenta + added, apart + added
        weights.grad = torch.stack([seen.gradient, seen.sampled_gradient])
        adam.step()
        momenta, apart = (float((x[0] - x[1]).norm()) for x in (adam.state[weights]["exp_avg"], weights.detach()))
        rows.append(MomentumError(number, momenta, *bounds, apart))
    return rows


# ---------------------------------------------------------------- a small model


class TinyModel(NamedTuple):
    """A model small enough to know everything about: two linear maps on principal components of real features."""

    sounds: Tensor  # (N, F) float64
    words: Tensor  # (N, K, F)
    dim: int

    def __call__(self, weights: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """`Embed`."""
        audio, text = weights.view(2, -1, self.dim)
        return F.normalize(self.sounds[items] @ audio, dim=-1), F.normalize(self.words[items] @ text, dim=-1)

    def start(self, seed: int) -> Tensor:
        """Random first weights."""
        count = 2 * self.sounds.shape[1] * self.dim
        return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tiny_model(
    data: World,
    text_encoder: nn.Module,
    *,
    clips: int = 24,
    features: int = 8,
    dim: int = 4,
    languages: Sequence[str] = LANGUAGES,
) -> TinyModel:
    """The first clips of an encoded world's training set with their captions in all languages; where there are fewer
    clips, all of them, and as many components.
    """
    view = data.train.head(clips)
    features = min(features, len(view))
    captions = [[several[0] for several in view.captions(code)] for code in languages]
    words = torch.stack([text_encoder(texts).double() for texts in captions], dim=1)
    words = _components(words.flatten(0, 1), features).view(len(view), -1, features)
    return TinyModel(_components(view.audio(slice(0, len(view)))[0].double(), features), words, dim)


def _components(values: Tensor, count: int) -> Tensor:
    """First principal components, `(N, D)` → `(N, count)`, mean squared length of a row 1."""
    u, s, _ = torch.linalg.svd(values - values.mean(0), full_matrices=False)
    parts = (u * s)[:, :count]
    return parts / parts.square().sum(1).mean().sqrt()


def bound_table(
    model: TinyModel,
    seeds: Sequence[int],
    *,
    epochs: int = 15,
    batch_size: int = 12,
    rate: float = RATE,
    adam: bool = False,
    english_other: bool = False,
    **choices: Any,
) -> pd.DataFrame:
    """Both sides of the bound for each way to sample languages that errs: columns of `weight_errors`, sampling, seed.

    adam: of `momentum_errors` instead, a row a step; english_other: whether "pair" is the whole of CACL, with its loss
    between both texts, and not its sampling alone; choices: see `compare`.
    """
    clips, languages = model.words.shape[:2]
    runs = [(sampling, seed) for sampling in ERRING for seed in seeds]
    measure = partial(momentum_errors if adam else weight_errors, model, rate=rate, **{"tau": TAU, **choices})
    calls = []
    for sampling, seed in runs:
        share = TEXT_SHARE if english_other and sampling == "pair" else 0.0
        plan = language_plan(clips, languages, sampling=sampling, epochs=epochs, batch_size=batch_size, seed=seed)
        calls.append(partial(measure, model.start(seed), plan, text_share=share))
    found = zip(runs, side_by_side(calls), strict=True)
    tables = [pd.DataFrame(rows).assign(sampling=sampling, seed=seed) for (sampling, seed), rows in found]
    return pd.concat(tables, ignore_index=True)


def predicted_bound(model: TinyModel, table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """`bound_table` with a λ that was known before the run: the steepest that another seed's runs in `table` had.

    With λ read off the two runs themselves the bound is the triangle inequality, which cannot fail; this one can.
    """
    slope = (table.groupby("seed")["growth"].max() - 1) / RATE  # Eq. 8
    seeds = list(slope.index)
    before = zip(seeds, [seeds[-1], *seeds], strict=False)
    tables = [bound_table(model, [seed], lipschitz=float(slope[other]), **options) for seed, other in before]
    return pd.concat(tables, ignore_index=True)


def violated(table: pd.DataFrame, side: str = "right") -> np.ndarray:
    """Share of the epochs or steps in which the error exceeds a bound: `(seeds, 1)`."""
    over = table["left"] > table[side] * (1 + 1e-9)
    return over.groupby(table["seed"]).mean().to_numpy()[:, None]


def at_end(table: pd.DataFrame, sampling: str, column: str = "left") -> np.ndarray:
    """A column of `bound_table` after the last epoch, `(seeds, 1)`."""
    last = table[(table["sampling"] == sampling) & (table["epoch"] == table["epoch"].max())]
    return last.sort_values("seed")[column].to_numpy()[:, None]

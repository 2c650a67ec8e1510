"""A model small enough to compute ATRI's bound on its weights, trained on features of real clips."""

from __future__ import annotations

from collections.abc import Sequence
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
from pullpush.studies.consistency.bound import log_probability, momentum_errors, weight_errors
from pullpush.studies.consistency.schemes import SAMPLINGS, language_plan

RATE, TAU = 0.1, 0.3  # of the small model's runs
TEXT_SHARE = 1 / 3  # of CACL's loss: English with the other text (Eq. 12)


class TinyModel(NamedTuple):
    """A model small enough to know everything about: two linear maps on principal components of real features."""

    sounds: Tensor  # (N, F) float64
    words: Tensor  # (N, K, F)
    dim: int

    @property
    def weights(self) -> int:
        """How many it has."""
        return 2 * self.sounds.shape[1] * self.dim

    def __call__(self, weights: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """`bound.Embed`."""
        audio, text = weights.view(2, -1, self.dim)
        return F.normalize(self.sounds[items] @ audio, dim=-1), F.normalize(self.words[items] @ text, dim=-1)

    def start(self, seed: int) -> Tensor:
        """Random first weights."""
        return torch.randn(self.weights, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tiny_model(
    data: World,
    text_encoder: nn.Module,
    *,
    clips: int = 24,
    features: int = 8,
    dim: int = 4,
    languages: Sequence[str] = LANGUAGES,
) -> TinyModel:
    """The first clips of the training set with their captions in all languages.

    Args:
        data: an encoded world.
        text_encoder: frozen, texts → `(N, D)`.
        clips, features, dim: where there are fewer clips, all of them, and as many components.
        languages: of the captions.
    """
    view = data.train.head(clips)
    clips = len(view)
    features = min(features, clips)  # of so few clips there are no more components
    sounds = view.audio(slice(0, clips))[0].double()
    words = torch.stack(
        [text_encoder([captions[0] for captions in view.captions(k)]).double() for k in languages], dim=1
    )
    words = _components(words.flatten(0, 1), features).view(clips, -1, features)
    return TinyModel(_components(sounds, features), words, dim)


def _components(values: Tensor, count: int) -> Tensor:
    """First principal components, `(N, D)` → `(N, count)`, mean squared length of a row 1."""
    centred = values - values.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
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
    """Both sides of the bound for each way to sample languages: columns those of `weight_errors`, sampling and seed.

    adam: of `momentum_errors` instead, a row a step; english_other: whether "pair" is the whole of CACL, with its loss
    between both texts, and not its sampling alone; choices: see `bound.compare`.
    """
    clips, languages = model.words.shape[:2]
    runs = [(sampling, seed) for sampling in SAMPLINGS for seed in seeds]
    measure = partial(momentum_errors if adam else weight_errors, model, rate=rate, **{"tau": TAU, **choices})
    calls = []
    for sampling, seed in runs:
        share = TEXT_SHARE if english_other and sampling == "pair" else 0.0
        plan = language_plan(clips, languages, sampling=sampling, epochs=epochs, batch_size=batch_size, seed=seed)
        calls.append(partial(measure, model.start(seed), plan, text_share=share))
    tables = [
        pd.DataFrame(rows).assign(sampling=sampling, seed=seed)
        for (sampling, seed), rows in zip(runs, side_by_side(calls), strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def predicted_bound(model: TinyModel, table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """`bound_table` with a λ that was known before the run: the steepest that another seed's runs in `table` had.

    With λ read off the two runs themselves the bound is the triangle inequality, which cannot fail; this one can.

    options: epochs, batch_size and english_other of `table`.
    """
    slope = (table.groupby("seed")["growth"].max() - 1) / RATE  # Eq. 8
    seeds = list(slope.index)
    before = zip(seeds, [seeds[-1], *seeds], strict=False)
    tables = [bound_table(model, [seed], lipschitz=float(slope[other]), **options) for seed, other in before]
    return pd.concat(tables, ignore_index=True)


def violated(table: pd.DataFrame, side: str = "right") -> np.ndarray:
    """Share of the epochs or steps, of the samplings that err, in which the error exceeds a bound: `(seeds, 1)`."""
    table = table[table["sampling"] != "all"]
    over = table["left"] > table[side] * (1 + 1e-9)
    return over.groupby(table["seed"]).mean().to_numpy()[:, None]


def at_end(table: pd.DataFrame, sampling: str, column: str = "left") -> np.ndarray:
    """A column of `bound_table` after the last epoch, `(seeds, 1)`."""
    last = table[(table["sampling"] == sampling) & (table["epoch"] == table["epoch"].max())]
    return last.sort_values("seed")[column].to_numpy()[:, None]


def printed_gradient(model: TinyModel, seed: int, *, clips: int = 12) -> float:
    """Norm of Σ p ∇log p with p of Eq. 1 over all languages: zero, so that the run of Eq. 17 never moves."""
    weights = model.start(seed).requires_grad_()
    log_p = log_probability(*model(weights, torch.arange(clips)), TAU, reading="printed")
    (gradient,) = torch.autograd.grad((log_p.detach().exp() * log_p).sum(), weights)
    return float(gradient.norm())

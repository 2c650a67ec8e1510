"""The direction error of ATRI's Figure 2, measured while models train."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab import common
from pullpush.lab.compute import probed
from pullpush.lab.session import Session
from pullpush.losses import cacl, kcl, ml_clap
from pullpush.metrics import angle, direction_error
from pullpush.studies.consistency.schemes import SCHEMES, take
from pullpush.studies.consistency.space import Space
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import on_features
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe
from pullpush.training.runs import ready

PROBED = ("one", "pair", "one aim", "pair aim", "one gradient", "pair gradient", "batch gradient")


class DirectionProbe(Diagnostics):
    """Asks a model, while it trains, how far one random language is from all of them: on embeddings and on gradients.

    Columns, mean angles in degrees: `one`, Figure 2's error if one random language is taken (ML-CLAP); `pair`, if
    English and another are (CACL); `one gradient` and `pair gradient`, between the gradients of `ml_clap` and `cacl`
    on a batch and that of `kcl` on the same batch, over all weights; `batch gradient`, between the gradients of `kcl`
    on two batches, the yardstick. `one aim` and `pair aim`: the same errors per unit of spread, see `aim_error`.
    """

    def __init__(self, split: Clips, languages: Sequence[str], *, every: int, batch_size: int, draws: int = 4) -> None:
        super().__init__(every=every)
        self.batch_size, self.draws = min(batch_size, len(split) // 2), draws
        view = split.head(self.batch_size * (draws + 1))
        data = PairDataset(view, languages=languages, sampling="all")
        self.batch: Batch = collate([data[i] for i in range(len(data))])

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        return torch.empty(0)

    def after(self, objective: Objective, batch: Batch, pair: Any, start: Tensor) -> dict[str, float]:
        generator = torch.Generator().manual_seed(0)
        with torch.enable_grad():
            audio, texts = self._encode(objective)
            clips, count = texts.shape[:2]
            taken = {name: take(clips, count, name, generator) for name in ("random", "pair")}
            row = {}
            for name, each in zip(("one", "pair"), taken.values(), strict=True):
                row[name] = float(direction_error(audio, texts, each).detach().nanmean())
                row[f"{name} aim"] = float(aim_error(audio, texts, each).detach().nanmean())
            return row | self._gradients(objective, audio, texts, taken)

    def _encode(self, objective: Objective) -> tuple[Tensor, Tensor]:
        batch, model = self.batch, objective.model
        sides = zip((batch.texts, *batch.parallel), (batch.languages, *batch.parallel_languages), strict=True)
        texts = torch.stack([model.encode_text(text, languages) for text, languages in sides], dim=1)
        return model.encode_audio(batch.audio, batch.lengths), texts

    def _gradients(
        self, objective: Objective, audio: Tensor, texts: Tensor, taken: Mapping[str, Tensor]
    ) -> dict[str, float]:
        weights = [weight for weight in objective.model.parameters() if weight.requires_grad]

        def gradient(loss: Tensor) -> Tensor:
            parts = torch.autograd.grad(loss, weights, retain_graph=True)
            return torch.cat([part.flatten() for part in parts])

        rows, last = [], None
        for start in range(0, len(audio) - self.batch_size + 1, self.batch_size):
            at = slice(start, start + self.batch_size)
            of_kcl = gradient(kcl(audio[at], texts[at]))
            of_ml_clap = gradient(ml_clap(audio[at], texts[at][taken["random"][at]]))
            other = texts[at][:, 1:][taken["pair"][at][:, 1:]]
            of_cacl = gradient(cacl(audio[at], texts[at][:, 0], other))
            row = {"one gradient": angle(of_ml_clap, of_kcl), "pair gradient": angle(of_cacl, of_kcl)}
            rows.append(row | ({"batch gradient": angle(last, of_kcl)} if last is not None else {}))
            last = of_kcl
        return {name: float(value) for name, value in pd.DataFrame(rows).astype(float).mean().items()}


def aim_error(audio: Tensor, texts: Tensor, taken: Tensor) -> Tensor:
    """Direction error per unit of spread: how far beside the mean of all K texts a clip aims, over the spread of texts.

    The angle of `direction_error` grows by parallax as a clip comes nearer to its texts, although the texts stay where
    they are. This is the distance from the mean of all texts to the line through the clip and the mean of those taken,
    over the mean distance of all clips' means from their centre.

    Args:
        audio: `(N, d)` embeddings.
        texts: `(N, K, d)` embeddings.
        taken: `(N, K)` boolean.

    Returns:
        `(N,)`; 0 where all are taken, NaN where a clip lies on the mean of those taken.

    Example:
        >>> texts = torch.tensor([[[3.0, 1.0], [3.0, -1.0]], [[-3.0, 1.0], [-3.0, -1.0]]])
        >>> taken = torch.tensor([[True, False], [True, True]])
        >>> aim_error(torch.tensor([[3.0, -1.0], [9.0, 9.0]]), texts, taken)
        tensor([0., 0.])
        >>> aim_error(torch.tensor([[0.0, 1.0], [9.0, 9.0]]), texts, taken)
        tensor([0.3333, 0.0000])
    """
    weight = taken.to(texts.dtype) / taken.sum(dim=1, keepdim=True)
    mean = texts.mean(dim=1)
    way = (texts * weight[..., None]).sum(dim=1) - audio
    unit = way / way.norm(dim=1, keepdim=True)
    left = mean - audio
    beside = (left - (left * unit).sum(dim=1, keepdim=True) * unit).norm(dim=1)
    return beside / (mean - mean.mean(dim=0)).norm(dim=1).mean()


def direction_history(
    book: Session, data: World, seeds: Iterable[int], *, points: int = 12, languages: Sequence[str] = LANGUAGES
) -> pd.DataFrame:
    """The probe's columns over training under each scheme: columns recipe, seed, step, …; the runs are not kept."""
    plans = [common.sized(book, name, **on_features(data), languages=tuple(languages)) for name in SCHEMES]
    ready(data, plans[-1], seed=0)  # texts are encoded once, before the processes start
    runs = [(plan, seed) for plan in plans for seed in seeds]
    steps = probed(data, runs, partial(_direction_probe, points))
    tables = [
        table[["step", *PROBED]].dropna().assign(recipe=plan.name, seed=seed)
        for (plan, seed), table in zip(runs, steps, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["recipe", "seed", "step", *PROBED]]


def _direction_probe(points: int, data: World, plan: Recipe) -> DirectionProbe:
    steps = -(-len(data.train) // plan.batch_size) * plan.epochs
    size = min(plan.batch_size, len(data.valid) // 4)
    return DirectionProbe(data.valid, plan.languages, every=max(1, steps // points), batch_size=size)


def direction_by_count(spaces: Mapping[tuple[str, int], Space]) -> pd.DataFrame:
    """Figure 2's error over the number of languages, in degrees: columns system, seed, what, count, error.

    what: "one of K", a random language against all of K random ones; "m of all", m random ones against all.
    """
    rows = []
    for (system, seed), (audio, texts) in spaces.items():
        texts = texts[:, 0]
        clips, most = texts.shape[:2]
        order = torch.rand(clips, most, generator=torch.Generator().manual_seed(seed)).argsort(1)
        mixed = texts.gather(1, order[:, :, None].expand_as(texts))
        for count in range(1, most + 1):
            place = torch.arange(most)[None].expand(clips, -1)
            of_first = direction_error(audio, mixed[:, :count], place[:, :count] < 1)
            of_several = direction_error(audio, mixed, place < count)
            for what, error in (("one of K", of_first), ("m of all", of_several)):
                rows.append((system, seed, what, count, error.nanmean().item()))
    return pd.DataFrame(rows, columns=["system", "seed", "what", "count", "error"])


def pull_plane(pulls: Tensor, languages: Sequence[str] = LANGUAGES) -> pd.DataFrame:
    """The pulls of a clip's texts on it in the plane of their mean and of what they differ in most.

    Args:
        pulls: `(K, d)`, a text a row.
        languages: K codes.

    Returns:
        Columns language, along (the mean's direction), across (up for the first language); the last row is the mean,
        whose language is "all".

    Example:
        >>> pull_plane(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), ("eng", "fra"))["across"].tolist()
        [1.0, -1.0, 0.0]
    """
    unit = F.normalize(pulls.mean(dim=0), dim=0)
    along = pulls @ unit
    rest = pulls - along[:, None] * unit
    across = rest @ torch.linalg.svd(rest, full_matrices=False).Vh[0]
    across = across if across[0] >= 0 else -across
    table = pd.DataFrame({"language": list(languages), "along": along.numpy(), "across": across.numpy()})
    table.loc[len(table)] = {"language": "all", "along": float(along.mean()), "across": 0.0}
    return table

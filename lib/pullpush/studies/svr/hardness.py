"""The predicted radius of a batch whose negatives are hard to a chosen degree (SupCLAP Figure 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.clips import Clips, World
from pullpush.errors import PullPushError
from pullpush.lab.compute import probed
from pullpush.losses import SVR, RadiusPredictor
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe


class RadiusProbe(Diagnostics):
    """Asks a run's radius predictor, while it trains, about batches whose negatives are hard to a chosen degree.

    Each anchor gets a batch of its own: its positive, K hard negatives, and others at random (SupCLAP Figure 7).
    Hard are the most similar of `pool` sampled negatives, by the model's own similarities ("similar"), or those whose
    scene graph fits best without fitting fully ("graph", where there are scene graphs).
    """

    def __init__(
        self, split: Clips, *, every: int, ks: Sequence[int] = (0, 6, 12, 18), anchors: int = 64, pool: int = 720
    ) -> None:
        super().__init__(every=every)
        self.ks, self.anchors = tuple(ks), anchors
        self.view = split.head(anchors + min(pool, len(split) - anchors))
        pairs = PairDataset(self.view)
        self.batch: Batch = collate([pairs[i] for i in range(len(pairs))])
        self.relevance = self.view.head(anchors).relevance(self.view)[:, anchors:]

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        return torch.empty(0)

    @torch.no_grad()
    def after(self, objective: Objective, batch: Batch, pair: Any, start: Tensor) -> dict[str, float]:
        """Columns `radius <kind> <K>`: mean R over the anchors."""
        loss = next(term for term in objective.terms if isinstance(term, SVR) and term.predictor is not None)
        text = objective.model.encode_text(self.batch.texts[: self.anchors])
        audio = objective.model.encode_audio(self.batch.audio, self.batch.lengths)
        similarity = text @ audio.T / loss.tau
        positive, others = similarity[:, : self.anchors].diagonal(), similarity[:, self.anchors :]
        others = others.masked_fill(self.relevance >= 1, -torch.inf)  # fits fully: no negative
        hardness = {"similar": others}
        if self.view.graded:  # a real dataset has no scene graphs
            hardness["graph"] = self.relevance.masked_fill(self.relevance >= 1, -1.0)
        generator = torch.Generator().manual_seed(0)
        return {
            f"radius {kind} {k}": self._radius(loss.predictor, positive, others, order, k, generator)
            for kind, order in hardness.items()
            for k in self.ks
        }

    def _radius(
        self, predictor: RadiusPredictor, positive: Tensor, others: Tensor, order: Tensor, k: int, generator: Any
    ) -> float:
        """Mean R when K negatives are the first of `order` and the rest random, in random places of the batch."""
        n = predictor.batch_size
        k = min(k, n - 1)
        noise = torch.rand(others.shape, generator=generator)
        hard = (order + 1e-6 * noise).topk(k, dim=1).indices
        easy = noise.masked_fill(torch.isinf(others), -1).scatter(1, hard, -1.0).topk(n - 1 - k, dim=1).indices
        chosen = others.gather(1, torch.cat([hard, easy], dim=1))
        places = torch.rand(chosen.shape, generator=generator).argsort(1)
        rows = torch.cat([positive[:, None], chosen.gather(1, places)], dim=1)
        return predictor.layers(rows.to(predictor.layers[0].weight.dtype)).mean().item()


def radius_by_hardness(data: World, plan: Recipe, seeds: Iterable[int], **probe: Any) -> pd.DataFrame:
    """Figure 7: columns seed, step, kind, K, radius; the runs are not kept."""
    seeds, anchors = list(seeds), probe.get("anchors", 64)
    if anchors < 1 or len(data.train) - anchors < plan.batch_size:
        raise PullPushError(
            f"{len(data.train)} training clips are too few: hard negatives are chosen among more than the "
            f"{plan.batch_size - 1} that a batch of {plan.batch_size} holds"
        )
    tables = []
    for seed, steps in zip(seeds, probed(data, [(plan, seed) for seed in seeds], partial(_probe, probe)), strict=True):
        columns = [name for name in steps if name.startswith("radius ")]
        table = steps[["step", *columns]].dropna().melt("step", value_name="radius")
        names = table["variable"].str.split(" ", expand=True)
        tables.append(table.assign(kind=names[1], K=names[2].astype(int), seed=seed))
    return pd.concat(tables, ignore_index=True)[["seed", "step", "kind", "K", "radius"]]


def _probe(options: Mapping[str, Any], data: World, plan: Recipe) -> RadiusProbe:
    return RadiusProbe(data.train, **options)

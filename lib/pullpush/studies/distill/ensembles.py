"""Systems 2–5 × three encoders as one: weights sought on validation, their scores on the test clips (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.metrics.annotations import FITS, annotated_by_clip
from pullpush.metrics.ensembles import Landscape, by_number, combine, learned, score, two_stages
from pullpush.metrics.inference import Array
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.stages import ENCODERS, SYSTEMS, Stage
from pullpush.training.evaluate import embed_audio, embed_captions

MEMBERS = ("2", "3", "4", "5")
STEP = 0.1  # of the grid; the paper's is 0.05, on which the same search takes six times as long
PROTOCOL: Mapping[str, Any] = {"threshold": FITS, "divisor": "relevant"}
BATCH = 512


class Similarities(NamedTuple):
    """S systems × M encoders: `valid (S, M, N, N)` by first captions, `test (S, M, N·C, N)` by all, and what fits,
    `(N, N)` each.
    """

    systems: tuple[str, ...]
    encoders: tuple[str, ...]
    valid: Tensor
    test: Tensor
    fits_valid: Tensor
    fits_test: Tensor

    def only(self, members: Sequence[tuple[str, str]]) -> Tensor:
        """Equal weights of some members, by system and encoder, `(S, M)`."""
        weights = torch.zeros(len(self.systems), len(self.encoders), dtype=torch.float64)
        for system, encoder in members:
            weights[self.systems.index(system), self.encoders.index(encoder)] = 1 / len(members)
        return weights


def similarities(ground: Grounds, seed: int) -> Similarities:
    """What the systems of a seed make of validation and test clips; their runs are trained if they are not there."""
    stages = [[replace(SYSTEMS[system], encoder=encoder) for encoder in ENCODERS] for system in MEMBERS]
    pairs = [[_member(ground, stage, seed) for stage in row] for row in stages]
    valid, test = (torch.stack([torch.stack([pair[side] for pair in row]) for row in pairs]) for side in (0, 1))
    world = ground.view_of(stages[0][0]).data
    return Similarities(MEMBERS, tuple(ENCODERS), valid, test, world.valid.relevance(), world.test.relevance())


def _member(ground: Grounds, stage: Stage, seed: int) -> tuple[Tensor, Tensor]:
    model, world = ground.plan(stage, seed).train(progress=False).model, ground.view_of(stage).data

    def similarity(clips: Any, captions: list[list[str]]) -> Tensor:
        text = embed_captions(model, captions, batch_size=BATCH).flatten(0, 1)
        return text @ embed_audio(model, clips, batch_size=BATCH).T

    first = [texts[:1] for texts in world.valid.captions("eng")]
    return similarity(world.valid, first), similarity(world.test, world.test.captions("eng"))


class Found(NamedTuple):
    """Ensembles of one seed: name → weights `(S, M)`; and the landscapes of the second search of E1 and E3."""

    weights: dict[str, Tensor]
    landscapes: dict[str, Landscape]


def sought(given: Similarities, *, step: float = STEP) -> Found:
    """E1 to E4, and beside them learnt weights, equal weights, and the best member alone, all chosen on validation."""
    weights, landscapes = {}, {}
    for first, (best, second) in {"systems": ("E1", "E2"), "models": ("E3", "E4")}.items():
        found = two_stages(given.valid, given.fits_valid, first=first, step=step, **PROTOCOL)
        weights[best], landscapes[best] = found.weights, found.landscape
        runner_up = found.landscape.points[found.landscape.best(min(2, len(found.landscape.scores)))]
        weights[second] = found.within * (runner_up[None] if first == "systems" else runner_up[:, None])
    members, shape = given.valid.flatten(0, 1), given.valid.shape[:2]
    weights["learned"] = learned(members, given.fits_valid, threshold=FITS).view(shape)
    weights["equal"] = torch.full(shape, 1 / len(members), dtype=torch.float64)
    alone = [score(member, given.fits_valid, **PROTOCOL) for member in members]
    weights["best member"] = torch.eye(len(members), dtype=torch.float64)[int(np.argmax(alone))].view(shape)
    return Found(weights, landscapes)


def values(given: Sequence[Similarities], weights: Sequence[Tensor]) -> dict[str, Array]:
    """Scores by seed and test clip of members weighted by `(S, M)`, given by seed: metric → `(seeds, N)`."""
    mixed = [combine(one.test.flatten(0, 1), each.flatten()) for one, each in zip(given, weights, strict=True)]
    scores = [annotated_by_clip(each, one.fits_test) for each, one in zip(mixed, given, strict=True)]
    return {metric: np.stack([each[metric].numpy() for each in scores]) for metric in scores[0]}


def by_size(given: Sequence[Similarities], *, most: int = 24) -> pd.DataFrame:
    """mAP@16 of equal weights over the number of members, by first captions of the test clips; subsets of one size are
    drawn, at most so many.

    Returns:
        Columns members, seed (its number), value (mean over subsets), low, high (the worst and the best subset).
    """
    rows = []
    for seed, one in enumerate(given):
        captions = one.test.shape[2] // one.test.shape[3]
        members = one.test.flatten(0, 1)[:, ::captions]
        for size, scores in by_number(members, one.fits_test, most=most, **PROTOCOL).items():
            rows.append((size, seed, float(scores.mean()), float(scores.min()), float(scores.max())))
    return pd.DataFrame(rows, columns=["members", "seed", "value", "low", "high"])

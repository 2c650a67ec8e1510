"""Systems 2–5 × three encoders as one: weights sought on validation, their scores on the test clips (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.lab.ledger import Ledger
from pullpush.lab.scores import Scores
from pullpush.metrics.annotations import FITS, annotated_by_clip
from pullpush.metrics.ensembles import Landscape, TwoStages, by_number, combine, learned, score, two_stages
from pullpush.metrics.inference import Array, Difference, difference
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.stages import EARS, SYSTEMS
from pullpush.training.evaluate import embed_audio, embed_captions

MEMBERS = ("2", "3", "4", "5")
STEP = 0.1  # of the grid; the paper's is 0.05, on which the same search takes six times as long
PROTOCOL: Mapping[str, Any] = {"threshold": FITS, "divisor": "relevant"}
BATCH = 512


class Similarities(NamedTuple):
    """S systems × M ears: `valid (S, M, N, N)` by first captions, `test (S, M, N·C, N)` by all, and what fits, `(N, N)`
    each.
    """

    systems: tuple[str, ...]
    ears: tuple[str, ...]
    valid: Tensor
    test: Tensor
    fits_valid: Tensor
    fits_test: Tensor

    def values(self, weights: Tensor) -> dict[str, Array]:
        """Scores by test clip of the members weighted by `(S, M)`; see `metrics.annotations`."""
        mixed = combine(self.test.flatten(0, 1), weights.flatten())
        return {name: value.numpy() for name, value in annotated_by_clip(mixed, self.fits_test).items()}

    def only(self, members: Sequence[tuple[str, str]]) -> Tensor:
        """Equal weights of some members, by system and ears, `(S, M)`."""
        weights = torch.zeros(len(self.systems), len(self.ears), dtype=torch.float64)
        for system, ears in members:
            weights[self.systems.index(system), self.ears.index(ears)] = 1 / len(members)
        return weights


def similarities(
    ground: Grounds, seed: int, systems: Sequence[str] = MEMBERS, ears: Sequence[str] = tuple(EARS)
) -> Similarities:
    """What the systems of a seed make of validation and test clips; their runs are trained if they are not there."""
    valid, test = [], []
    view = ground.view(SYSTEMS[systems[0]].named(ears[0]))
    for system in systems:
        rows = [_member(ground, system, each, seed) for each in ears]
        valid.append(torch.stack([row[0] for row in rows]))
        test.append(torch.stack([row[1] for row in rows]))
    truths = (view.data.valid.relevance(), view.data.test.relevance())
    return Similarities(tuple(systems), tuple(ears), torch.stack(valid), torch.stack(test), *truths)


def _member(ground: Grounds, system: str, ears: str, seed: int) -> tuple[Tensor, Tensor]:
    stage = SYSTEMS[system]
    model, world = ground.plan(stage, ears, seed).train(progress=False).model, ground.view(stage.named(ears)).data
    captions = [texts[:1] for texts in world.valid.captions("eng")]
    pairs = ((world.valid, captions), (world.test, world.test.captions("eng")))
    found = []
    for clips, texts in pairs:
        text = embed_captions(model, texts, batch_size=BATCH).flatten(0, 1)
        found.append(text @ embed_audio(model, clips, batch_size=BATCH).T)
    return found[0], found[1]


class Found(NamedTuple):
    """Ensembles of one seed: name → weights `(S, M)`; and the landscapes of both orders' second search."""

    weights: dict[str, Tensor]
    landscapes: dict[str, Landscape]
    objective: dict[str, float]


def sought(given: Similarities, *, step: float = STEP) -> Found:
    """E1 to E4, and beside them learnt weights, equal weights, and the best member alone, all chosen on validation."""
    weights, landscapes = {}, {}
    for first, (best, second) in {"systems": ("E1", "E2"), "models": ("E3", "E4")}.items():
        found = two_stages(given.valid, given.fits_valid, first=first, step=step, **PROTOCOL)
        weights[best], landscapes[best] = found.weights, found.landscape
        weights[second] = _placed(found, first, 2)
    members = given.valid.flatten(0, 1)
    shape = given.valid.shape[:2]
    weights["learned"] = learned(members, given.fits_valid, threshold=FITS).view(shape)
    weights["equal"] = torch.full(shape, 1 / len(members), dtype=torch.float64)
    alone = [score(member, given.fits_valid, **PROTOCOL) for member in members]
    weights["best member"] = torch.eye(len(members), dtype=torch.float64)[int(np.argmax(alone))].view(shape)
    objective = {
        name: score(combine(members, each.flatten()), given.fits_valid, **PROTOCOL) for name, each in weights.items()
    }
    return Found(weights, landscapes, objective)


def _placed(found: TwoStages, first: str, place: int) -> Tensor:
    """The weights in another place of the second search: E2 and E4 are the runners-up of E1 and E3."""
    between = found.landscape.points[found.landscape.best(min(place, len(found.landscape.scores)))]
    return found.within * (between[None] if first == "systems" else between[:, None])


def values(given: Sequence[Similarities], found: Sequence[Found]) -> dict[str, dict[str, Array]]:
    """Scores by seed and test clip of every ensemble: name → metric → `(seeds, N)`."""
    by_seed = [
        {name: one.values(each) for name, each in which.weights.items()}
        for one, which in zip(given, found, strict=True)
    ]
    return {name: _stacked([values[name] for values in by_seed]) for name in by_seed[0]}


def _stacked(by_seed: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {metric: np.stack([each[metric] for each in by_seed]) for metric in by_seed[0]}


def of_members(given: Sequence[Similarities], members: Sequence[tuple[str, str]]) -> dict[str, Array]:
    """Scores by seed and test clip of some members with equal weights: metric → `(seeds, N)`."""
    return _stacked([one.values(one.only(members)) for one in given])


def table(scores: Mapping[str, Mapping[str, Array]], metrics: Sequence[str]) -> pd.DataFrame:
    """Levels of ensembles: columns system, ears ("all"), metric, value, low, high, seeds, clips."""
    rows = []
    for name, found in scores.items():
        for metric in metrics:
            one = difference(found[metric])
            head = {"system": name, "ears": "all", "metric": metric}
            rows.append(
                head | {"value": one.value, "low": one.low, "high": one.high, "seeds": one.seeds, "clips": one.clips}
            )
    return pd.DataFrame(rows)


def weights_table(
    given: Similarities, found: Sequence[Found], names: Sequence[str] = ("E1", "E2", "E3", "E4", "learned")
) -> pd.DataFrame:
    """Weights as Table 3 prints them, the mean over seeds: a row an ensemble, a column a system and ears."""
    rows = []
    for name in names:
        mean = torch.stack([each.weights[name] for each in found]).mean(dim=0)
        cells = {
            f"{system} {ears}": float(mean[s, m])
            for s, system in enumerate(given.systems)
            for m, ears in enumerate(given.ears)
        }
        rows.append({"ensemble": name, **cells})
    return pd.DataFrame(rows)


def flatness(found: Sequence[Found], withins: Sequence[float] = (0.002, 0.005, 0.01)) -> pd.DataFrame:
    """Which share of all weights of the second search is nearly as good as the best on validation, mean over seeds:
    columns search, within (points), share.
    """
    rows = []
    for name, title in (("E1", "models, after systems"), ("E3", "systems, after models")):
        for within in withins:
            share = float(np.mean([each.landscapes[name].flat(within) for each in found]))
            rows.append((title, 100 * within, share))
    return pd.DataFrame(rows, columns=["search", "within (points)", "share of all weights"])


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
        for size, found in by_number(members, one.fits_test, most=most, **PROTOCOL).items():
            rows.append((size, seed, float(found.mean()), float(found.min()), float(found.max())))
    return pd.DataFrame(rows, columns=["members", "seed", "value", "low", "high"])


def without_weight(found: Sequence[Found], name: str = "E1") -> Difference:
    """The share of the members that an ensemble leaves out, by seed."""
    return difference(np.array([float((each.weights[name] < 1e-9).double().mean()) for each in found])[:, None])


def of_ears(given: Sequence[Similarities], found: Sequence[Found], ears: str, name: str = "E1") -> Difference:
    """What the members of one pair of ears weigh, less half of all, by seed."""
    at = given[0].ears.index(ears)
    return difference(np.array([float(each.weights[name][:, at].sum()) - 0.5 for each in found])[:, None])


def several_over_one(given: Sequence[Similarities], ears: str, metric: str) -> Difference:
    """One system through all ears over as many systems through one: members equal in number and weight."""
    names = given[0].ears
    systems = given[0].systems[: len(names)]
    wide = of_members(given, [(systems[-1], each) for each in names])
    deep = of_members(given, [(system, ears) for system in systems])
    return difference(wide[metric], deep[metric])


def judge(
    ledger: Ledger,
    systems: Scores,
    given: Sequence[Similarities],
    found: Sequence[Found],
    scores: Mapping[str, Mapping[str, Array]],
) -> None:
    """Judge the claims about ensembles; those that need members that are not there are left, with the reason."""
    several, single = "mAP@16 multiple", "R@1 single"
    ledger.judge("ensemble-order", difference(scores["E1"][several], scores["E3"][several]))
    ledger.judge("members-without-weight", without_weight(found))
    ledger.judge("first-ears-weigh-most", of_ears(given, found, given[0].ears[0]))
    if len(given[0].systems) < len(given[0].ears):
        ledger.leave("several-ears", "fewer systems than encoders in this profile")
    else:
        ledger.judge("several-ears", several_over_one(given, given[0].ears[0], several))
    alone = systems.values("2", several, {"ears": "yamnet"})
    ledger.judge("ensemble-over-single", difference(scores["E1"][several], alone))
    ledger.judge("ensemble-single", difference(scores["E3"][single], scores["best member"][single]))

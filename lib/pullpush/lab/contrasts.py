"""What judges a claim, as its file says it: a contrast of systems, of several scores or tests, less another contrast.

    judged: {experiment: scratch, system: [CLAPs, CyCLAPs], baseline: [CLAP, CyCLAP], metric: R@1,
             where: {world: freesound}, less: {where: {world: clotho}}}

Several systems with their baselines, scores and points are on the same clips, and averaged; several experiments and
tests (`test` of `where`) are of other clips, and joined, each with the same weight. `pooled` gives each experiment
points of its own: all are conditions on as many clips, whose i-th are averaged with equal weights, so that what seeds
share stays.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores, over
from pullpush.metrics.cards import METRICS
from pullpush.metrics.inference import Array, Difference, difference

CHANCE = "chance"  # a baseline
TEST = "test"  # what tells clips apart at a point

Judged = Mapping[Any, Any]
Experiments = Mapping[str, Scores]


def needed(judged: Judged) -> list[str]:
    """The names of the experiments that a contrast is of, none of what is judged otherwise."""
    sides = [judged, judged.get("less", {})]
    return list(dict.fromkeys(name for side in sides for name in _several(side.get("experiment", []))))


def contrast(scores: Experiments, judged: Judged, *, relative: bool = False) -> Difference:
    """The difference that a claim is judged by.

    Args:
        scores: of the experiments that it needs, by name.
        judged: see `book/claims/README.md`.
        relative: whether it is a ratio minus 1.

    Raises:
        ExperimentError: a system, point or score that is not there, or no seed that all have.
    """
    relative = judged.get("relative", relative)
    if "less" not in judged:
        return difference(gain(scores, judged, relative=relative))
    where = {**judged.get("where", {}), **judged["less"].get("where", {})}
    sides = (judged, {**judged, **judged["less"], "where": where})
    seeds = common_seeds(scores, *sides)
    return difference(*(gain(scores, side, relative=relative, seeds=seeds) for side in sides))


def gain(scores: Experiments, side: Judged, *, relative: bool = False, seeds: Sequence[int] = ()) -> Array:
    """What one side of a contrast names, by seed and clip, `(S, N)`; seeds: default: those that all its runs have."""
    metrics, tests = _several(side["metric"]), _tests(side)
    seeds = seeds or common_seeds(scores, side)
    parts = [[_gain(scores[one.experiment], one, metrics, seeds, relative) for one in test] for test in tests]
    if "pooled" in side:
        return np.mean([values for part in parts for values in part], axis=0)
    return joined([np.mean(part, axis=0) for part in parts])


def joined(tests: Sequence[Array]) -> Array:
    """Values `(S, N₁)`, `(S, N₂)` … of several tests as one, `(S, N₁ + N₂ …)`, whose mean is the mean of their means.

    >>> float(joined([np.ones((1, 1)), np.zeros((1, 3))]).mean())
    0.5
    """
    items = sum(values.shape[1] for values in tests)
    return np.concatenate([values * (items / (len(tests) * values.shape[1])) for values in tests], axis=1)


def by_chance(metric: str, clips: int) -> float:
    """What a random order scores where one of so many clips, or classes, is right; NaN where unknown.

    >>> round(by_chance("T2A R@10", 50), 3), by_chance("accuracy deu", 4)
    (0.2, 0.25)
    """
    if metric == "R@1":  # the mean of both directions, one caption a clip
        return 1 / clips
    known = [score.chance for card in METRICS.values() for score in card.scores if score.name == metric]
    return float(known[0](1, clips)) if known and known[0] else float("nan")


class _Pair(NamedTuple):
    """A system with what it is compared with, and, of those that are systems, the point of each."""

    experiment: str
    trained: list[tuple[str, Where]]
    baseline: Any


def _tests(side: Judged) -> list[list[_Pair]]:
    """What a side names, by the sets of clips that it is tested on."""
    systems, other = _several(side["system"]), side.get("baseline_where") or {}
    baselines = _several(side.get("baseline") or (systems if other else None))  # itself, at the other point
    pairs = list(zip(systems, baselines if len(baselines) == len(systems) else baselines * len(systems), strict=True))
    tests = []
    for experiment in _several(side["experiment"]):
        where = side["pooled"][experiment] if "pooled" in side else side.get("where") or {}
        where = {name: _several(value) for name, value in where.items()}
        for test in where.pop(TEST, [None]):
            at = {} if test is None else {TEST: test}
            points = [{**dict(zip(where, values, strict=True)), **at} for values in product(*where.values())]
            tests.append([])
            for (system, by), point in product(pairs, points):
                second = [(by, {**point, **other})] if isinstance(by, str) and by != CHANCE else []
                tests[-1].append(_Pair(experiment, [(system, point), *second], by))
    return tests


def common_seeds(scores: Experiments, *sides: Judged) -> list[int]:
    """The seeds that all runs of some sides have."""
    pairs = [one for side in sides for test in _tests(side) for one in test]
    found = [set(scores[one.experiment].seeds(*run)) for one in pairs for run in one.trained]
    if seeds := sorted(set.intersection(*found)):
        return seeds
    names = dict.fromkeys(name for one in pairs for name, _ in one.trained)
    raise ExperimentError(f"{' and '.join(names)} share no seed: train them with one")


def _gain(scores: Scores, pair: _Pair, metrics: Sequence[str], seeds: Sequence[int], relative: bool) -> Array:
    ours, *theirs = (
        np.mean([scores.values(name, metric, at, seeds=seeds) for metric in metrics], axis=0)
        for name, at in pair.trained
    )
    if not theirs:
        by = pair.baseline
        chance = [by_chance(metric, ours.shape[1]) for metric in metrics] if by == CHANCE else by
        return ours - np.mean(0.0 if chance is None else chance)
    return over(ours, *theirs) if relative else ours - theirs[0]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]

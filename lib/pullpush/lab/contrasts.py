"""What judges a claim, as its file says it: a contrast of systems, of several scores or tests, less another contrast.

    judged: {experiment: scratch, system: [CLAPs, CyCLAPs], baseline: [CLAP, CyCLAP], metric: R@1,
             where: {world: freesound}, less: {where: {world: clotho}}}

Several systems with their baselines, scores and points are on the same clips, and averaged; several experiments and
tests (`test` of `where`) are of other clips, and joined, each with the same weight. `pooled` gives each experiment
points of its own: all are conditions on as many clips, whose i-th are averaged with equal weights (`metrics.pooled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS
from pullpush.metrics.inference import Array, Difference, Variance, difference

SIDE = ("experiment", "system", "baseline", "metric", "where", "baseline_where")
FURTHER = ("less", "apart", "relative", "pooled")
CHANCE = "chance"  # a baseline
TEST = "test"  # what tells clips apart at a point
PARTS = ("seed", "clip", "interaction")  # of a variance

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
    values = [*judged.values(), *(judged.get("where") or {}).values()]
    if not any(isinstance(each, list) for each in values) and not judged.keys() & {"less", "apart"}:
        side: dict[str, Any] = {name: judged.get(name) for name in SIDE if name != "experiment"}
        if side["baseline"] != CHANCE:
            return scores[judged["experiment"]].contrast(**side, relative=relative)
    first = gain(scores, judged, relative=relative)
    if "less" not in judged:
        return difference(first)
    where = {**judged.get("where", {}), **judged["less"].get("where", {})}
    second = gain(scores, {**judged, **judged["less"], "where": where}, relative=relative)
    return unpaired(first, second) if judged.get("apart") else difference(*_of_shared_seeds([first, second]))


def gain(scores: Experiments, side: Judged, *, relative: bool = False) -> Array:
    """What one side of a contrast names, by seed and clip, `(S, N)`."""
    systems, baselines = _several(side["system"]), _several(side.get("baseline"))
    pairs = list(zip(systems, baselines if len(baselines) == len(systems) else baselines * len(systems), strict=True))
    metrics, other, parts = _several(side["metric"]), side.get("baseline_where") or {}, []
    for experiment in _several(side["experiment"]):
        where = side["pooled"][experiment] if "pooled" in side else side.get("where") or {}
        where = {name: _several(value) for name, value in where.items()}
        for test in where.pop(TEST, [None]):
            at = {} if test is None else {TEST: test}
            points = [{**dict(zip(where, values, strict=True)), **at} for values in product(*where.values())]
            gains = [
                _gain(scores[experiment], pair, metrics, point, {**point, **other}, relative)
                for pair in pairs
                for point in points
            ]
            parts += gains if "pooled" in side else [np.mean(gains, axis=0)]
    return np.mean(_of_shared_seeds(parts), axis=0) if "pooled" in side else joined(parts)


def joined(tests: Sequence[Array]) -> Array:
    """Values `(S, N₁)`, `(S, N₂)` … of several tests as one, `(S, N₁ + N₂ …)`, whose mean is the mean of their means.

    >>> float(joined([np.ones((1, 1)), np.zeros((1, 3))]).mean())
    0.5
    """
    items = sum(values.shape[1] for values in tests)
    return np.concatenate([values * items / (len(tests) * values.shape[1]) for values in tests], axis=1)


def by_chance(metric: str, clips: int) -> float:
    """What a random order scores where one of so many clips, or classes, is right; NaN where unknown.

    >>> round(by_chance("T2A R@10", 50), 3), by_chance("accuracy deu", 4)
    (0.2, 0.25)
    """
    if metric == "R@1":  # the mean of both directions, one caption a clip
        return 1 / clips
    known = [score.chance for card in METRICS.values() for score in card.scores if score.name == metric]
    return float(known[0](1, clips)) if known and known[0] else float("nan")


def unpaired(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Difference:
    """mean(first) − mean(second) of two experiments with nothing in common, each `(seeds, items)`.

    The variances of both means are those of `metrics.difference`; they add up, and 1/df is the sum of each one's
    squared share of that, divided by its df (Welch 1947). For three seeds and more, 93.4 to 96.3 % of the intervals for
    95 % hold the truth, in the designs of `metrics.inference`; for two, 90.5 %. Seeds and clips are the smaller number
    of both, components of the variance the sum.

    >>> print(unpaired([[3.0, 2.0], [4.0, 3.0], [3.5, 2.5]], [[1.0, 1.5, 0.5], [1.0, 2.0, 0.0]]))
    +2.00 ± 2.74 [−0.74, 4.74]
    """
    one, other = (difference(values, level=level) for values in (first, second))
    quantile = (1 + level) / 2
    squares = [(each.half_width / special.stdtrit(each.df, quantile)) ** 2 for each in (one, other)]
    total, value = sum(squares), one.value - other.value
    share = squares[0] / total if total else 0.5
    df, error = 1 / (share**2 / one.df + (1 - share) ** 2 / other.df), float(np.sqrt(total))
    half = float(special.stdtrit(df, quantile)) * error
    p = 2 * float(special.stdtr(df, -abs(value) / error)) if error else float(value == 0)
    parts = {name: getattr(one.variance, name) + getattr(other.variance, name) for name in PARTS}
    shares = {name: share * one.variance.shares[name] + (1 - share) * other.variance.shares[name] for name in PARTS}
    return Difference(
        value, value - half, value + half, half, p, float(df), level,
        seeds=min(one.seeds, other.seeds), clips=min(one.clips, other.clips), trunks=1,
        variance=Variance(**parts, shares=shares),
    )  # fmt: skip


def _gain(
    scores: Scores, pair: tuple[str, Any], metrics: Sequence[str], where: Where, other: Where, relative: bool
) -> Array:
    system, baseline = pair
    sides = [(system, where), *([(baseline, other)] if isinstance(baseline, str) and baseline != CHANCE else [])]
    seeds = sorted(set.intersection(*(set(scores.seeds(*side)) for side in sides)))
    if not seeds:
        raise ExperimentError(f"{' and '.join(name for name, _ in sides)} share no seed: train them with one")
    ours, *theirs = (
        np.mean([scores.values(name, metric, at, seeds=seeds) for metric in metrics], axis=0) for name, at in sides
    )
    if not theirs:
        chance = [by_chance(metric, ours.shape[1]) for metric in metrics] if baseline == CHANCE else baseline
        return ours - np.mean(0.0 if chance is None else chance)
    if not relative:
        return ours - theirs[0]
    ratio = ours.mean() / theirs[0].mean()  # linearised in both: the delta method
    return (ours - ratio * theirs[0]) / theirs[0].mean() + ratio - 1


def _of_shared_seeds(values: Sequence[Array]) -> list[Array]:
    """Values `(S, N)` of experiments with as many seeds as the one with fewest: all begin with the same."""
    return [each[: min(map(len, values))] for each in values]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]

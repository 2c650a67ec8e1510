"""What a term adds: by seed and test item, and in one experiment more than in another.

`gain(scores, ("CLAPs", "CLAP"), where={"world": "freesound"})` is an array by seed and item; `between` compares two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, Variance, difference

Metric = str | Sequence[str]  # several: their mean
Pair = tuple[str, str]  # a system and its baseline
PARTS = ("seed", "clip", "interaction")  # of a variance
RECALLS = tuple(f"{side} R@{k}" for side in ("A2T", "T2A") for k in (1, 5, 10))


def base_of(system: str) -> str:
    """The system without its last term, "" if it has none to lose.

    >>> [base_of(system) for system in ("CyCLAPs", "CyCLAP", "CLIPn", "CLAP")]
    ['CyCLAP', 'CLAP', 'CLIP', '']
    """
    plain = system.rstrip("sne")
    return plain if plain != system else system.removeprefix("Cy") if system.startswith("Cy") else ""


@dataclass(frozen=True)
class Gain:
    """What systems have over their baselines: `values` by seed and test item, `(S, N)`; `seeds`: the S seeds."""

    values: Array
    seeds: tuple[int, ...]

    @property
    def difference(self) -> Difference:
        """With the book's one inference."""
        return difference(self.values)


def gain(
    scores: Scores, pairs: Pair | Sequence[Pair], metric: Metric = "R@1", where: Where | None = None, *, relative=False
) -> Gain:
    """What a system has over its baseline, or several over theirs on average, by seed and test item.

    Args:
        scores: of an experiment.
        pairs: (system, baseline), one or several. Exchanged they give the fall of a loss.
        metric: a score, or several for their mean.
        where: the point of all of them.
        relative: of each pair the ratio of its means minus 1, linearised in both (the delta method).

    Raises:
        ExperimentError: a system, point or score that is not there, or no seed that all have.
    """
    chosen: Sequence[Pair] = [pairs] if isinstance(pairs[0], str) else pairs  # pyrefly: ignore[bad-assignment]
    names = {name for pair in chosen for name in pair}
    seeds = sorted(set.intersection(*(set(scores.seeds(name, where)) for name in names)))
    if not seeds:
        raise ExperimentError(f"{', '.join(sorted(names))} share no seed: train them with one")
    parts = []
    for system, baseline in chosen:
        ours, theirs = (values(scores, name, metric, where, seeds=seeds) for name in (system, baseline))
        ratio = ours.mean() / theirs.mean() if relative else 1.0
        parts.append((ours - ratio * theirs) / theirs.mean() + ratio - 1 if relative else ours - theirs)
    return Gain(np.mean(parts, axis=0), tuple(seeds))


def values(
    scores: Scores, system: str, metric: Metric, where: Where | None = None, *, seeds: Sequence[int] = ()
) -> Array:
    """`Scores.values` `(S, N)`, of several scores their mean."""
    names = [metric] if isinstance(metric, str) else list(metric)
    return np.mean([scores.values(system, name, where, seeds=seeds) for name in names], axis=0)


def between(first: Gain, second: Gain, *, paired: bool) -> Difference:
    """The first gain minus the second.

    paired: both are of the same test items in the same order, whose luck they share; then the seeds that both have are
    paired, too. Otherwise they are independent, see `unpaired`.

    Raises:
        ExperimentError: paired gains share no seed.
    """
    if not paired:
        return unpaired(first.values, second.values)
    both = [seed for seed in first.seeds if seed in second.seeds]
    if not both:
        raise ExperimentError(f"the gains share no seed: {first.seeds} and {second.seeds}")
    ours, theirs = ([one.values[one.seeds.index(seed)] for seed in both] for one in (first, second))
    return difference(ours, theirs)


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

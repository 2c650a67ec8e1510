"""The race to its end: systems that are tuned at every length of training, and compared at each.

    search = searched(systems, points, lengths=(1, 2), epochs=4, seeds=(1000,))
    best = tuning.best_points(compute.run(ground, search), by=("system", "length"))
    race = raced(systems, best, lengths=(1, 2), epochs=4, seeds=range(10))

A length is a multiple of the profile's epochs, with a schedule of its own: a longer run is not a shorter one gone on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores
from pullpush.studies.svr import comparisons, histories
from pullpush.studies.svr.mechanism import EVALUATIONS


def searched(
    systems: Mapping[str, System],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    lengths: Iterable[int],
    epochs: int,
    seeds: Iterable[int],
) -> Experiment:
    """The search on validation: every system at its points, at each length anew.

    Args:
        systems: label → recipe and overrides.
        points: label → what is tried, as options of the recipe; columns of the tables.
        lengths: multiples of `epochs`.
        seeds: of training, other ones than those of the comparison that follows.
    """
    trials = [
        Trial(system, recipe, {**overrides, **point, "epochs": length * epochs}, {"length": length, **point})
        for length in lengths
        for system, (recipe, overrides) in systems.items()
        for point in points[system]
    ]
    return Experiment("race-search", tuple(trials), tuple(seeds), evaluations=EVALUATIONS, long=True)


def raced(
    systems: Mapping[str, System],
    best: Mapping[tuple[str, int], Mapping[str, Any]],
    *,
    lengths: Iterable[int],
    epochs: int,
    seeds: Iterable[int],
) -> Experiment:
    """The comparison, at each length every system at the point that was best there.

    best: (system, length) → options of the recipe; of a length that was not searched those of the next shorter one,
    and where there is none, the system's own.
    """
    trials = []
    for length in lengths:
        for system, (recipe, overrides) in systems.items():
            searched = [each for name, each in best if name == system and each <= length]
            point = best[system, max(searched)] if searched else {}
            trials.append(Trial(system, recipe, {**overrides, **point, "epochs": length * epochs}, {"length": length}))
    return Experiment("race", tuple(trials), tuple(seeds), evaluations=EVALUATIONS, long=True)


def gains(scores: Scores, pairs: Iterable[tuple[str, str]], metric: str = "R@1") -> pd.DataFrame:
    """What a system has over another, (system, over), at each length, in points; p by Holm over all rows.

    Returns:
        Columns system, over, length, and those of `comparisons.differences`.
    """
    found = {
        (system, over, *point): one
        for system, over in pairs
        for point, one in comparisons.at_every_point(scores, system, over, metric).items()
    }
    return comparisons.differences(found, ["system", "over", "length"])


def epochs_to_target(scores: Scores, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """How soon systems are where another ends, (system, over), at each length: `histories.epochs_to_target`.

    Returns:
        Columns length, over, and those of it; a row each baseline and each of its systems.
    """
    systems: dict[str, list[str]] = {}
    for system, over in pairs:
        systems.setdefault(over, [over]).append(system)
    parts = []
    for length, rows in scores.history.groupby("length"):
        for over, names in systems.items():
            part = histories.epochs_to_target(rows, names, baseline=over)
            part.insert(0, "over", over)
            part.insert(0, "length", length)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)

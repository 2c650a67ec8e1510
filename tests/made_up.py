"""Scores that nobody trained, in which every effect is known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab.experiments import Experiment
from pullpush.lab.scores import Scores

METRICS = (*(f"{side} R@{k}" for side in ("A2T", "T2A") for k in (1, 5, 10)), "R@1")


def scores(
    level: Mapping[str, float],
    points: Mapping[str, Sequence[Any]] | None = None,
    *,
    bonus: Mapping[tuple[str, Any], float] | None = None,
    metrics: Sequence[str] = METRICS,
    seeds: Sequence[int] = (0, 1, 2),
    clips: int = 400,
    noise: float = 0.01,
    seed: int = 0,
) -> Scores:
    """Scores around `level` of each system, plus `bonus` of (system, value of the first column of points)."""
    rng = np.random.default_rng(seed)
    column, values = next(iter((points or {}).items()), ("", ()))
    varies = {column: {value: {} for value in values}} if column else None
    experiment = Experiment.of("made", {name: ("infonce", {}) for name in level}, seeds=seeds, varies=varies)
    found = {}
    own = rng.normal(0, noise, clips)  # what a clip is worth, whoever is asked
    for trial, run in experiment.cells:
        mean = level[trial.system] + (bonus or {}).get((trial.system, next(iter(trial.where.values()), None)), 0.0)
        luck = rng.normal(0, noise / 10)
        found[str(trial), run] = {name: mean + own + luck + rng.normal(0, noise, clips) for name in metrics}
    stamp: Any = None
    return Scores(experiment, found, pd.DataFrame(), pd.DataFrame(), stamp)


def nothing(like: Scores) -> Scores:
    """A long experiment that nobody has kept."""
    return Scores(like.experiment, {}, like.history, like.steps, like.stamp)

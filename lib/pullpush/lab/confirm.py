"""Whether today's code finds what was kept: a part of an experiment's runs is trained again, and every number compared.

Code moves and is reworded without changing a number. Rather than train hundreds of runs again for that, `differences`
says where a few runs of each system, trained by today's code, differ from what was kept of them: nowhere, or the result
is to be computed anew.
"""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd

from pullpush.lab.experiments import Experiment
from pullpush.lab.kept import PRECISION
from pullpush.lab.scores import Scores


def part(experiment: Experiment, seeds: int) -> Experiment:
    """Every trial of an experiment with its first seeds only.

    Example:
        >>> from pullpush.lab.experiments import Experiment
        >>> whole = Experiment.of("radius", {"InfoNCE": ("infonce", {})}, seeds=range(10))
        >>> part(whole, 2).seeds
        (0, 1)
    """
    trials = tuple(replace(trial, seeds=trial.seeds[:seeds]) for trial in experiment.trials)
    return replace(experiment, trials=trials, seeds=experiment.seeds[:seeds])


def differences(kept: Scores, again: Scores) -> tuple[str, ...]:
    """Where scores that were computed again differ from what was kept, at the precision of what is kept.

    Returns:
        "infonce, seed 0: T2A R@1" and the like; empty where all agree.
    """
    found = []
    for trial, seed in again.experiment.cells:
        cell = (str(trial), seed)
        found += [f"{trial}, seed {seed}: {name}" for name in _different_clips(kept.clips[cell], again.clips[cell])]
        for name in ("history", "steps"):
            old, new = (scores.rows(getattr(scores, name), trial, seed) for scores in (kept, again))
            found += [f"{trial}, seed {seed}: {column} of its {name}" for column in _different_columns(old, new)]
    return tuple(found)


def _different_clips(kept: dict[str, np.ndarray], again: dict[str, np.ndarray]) -> list[str]:
    """Metrics whose values by clip differ, or that one side lacks."""
    names = sorted(kept.keys() | again.keys())
    return [
        name
        for name in names
        if name not in kept
        or name not in again
        or not np.array_equal(kept[name].astype(np.float32), again[name].astype(np.float32), equal_nan=True)
    ]


def _different_columns(kept: pd.DataFrame, again: pd.DataFrame) -> list[str]:
    """Columns of numbers that differ; one that a table lacks counts as empty."""
    written = StringIO(again.to_csv(index=False, float_format=PRECISION))
    old, new = kept.reset_index(drop=True), pd.read_csv(written)
    if len(old) != len(new):
        return ["the number of rows"]
    names = dict.fromkeys([*old.columns, *new.columns])
    return [name for name in names if not np.array_equal(_column(old, name), _column(new, name), equal_nan=True)]


def _column(table: pd.DataFrame, name: str) -> np.ndarray:
    values = table[name] if name in table else pd.Series(np.nan, index=table.index)
    return pd.to_numeric(values, errors="coerce").to_numpy(float)

"""What a number of a run did while it trained, one number a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference
from pullpush.training.loop import Result

READINGS = {
    "gradient_drift_pull": "gradient, F_pull",
    "gradient_drift_tangent": "gradient, geodesic",
    "update_drift_tangent": "realised update, geodesic",
}
DRIFT_MEASURES = ("drift-gradient-pull", "drift-gradient-geodesic", "drift-update-geodesic")  # of READINGS, for ledgers


def over_training(scores: Scores, system: str, column: str) -> np.ndarray:
    """A measurement of a system by seed and stretch of training, `(S, T)`."""
    steps = scores.steps[scores.steps["system"] == system]
    return np.stack([rows.sort_values("step")[column].to_numpy(float) for _, rows in steps.groupby("seed")])


def late(scores: Scores, system: str, column: str) -> np.ndarray:
    """A measurement's mean over the second half of training, `(S, 1)`."""
    values = over_training(scores, system, column)
    return np.nanmean(values[:, values.shape[1] // 2 :], axis=1, keepdims=True)


def fall(values: np.ndarray) -> np.ndarray:
    """First quarter minus last quarter of training, of measurements over it `(S, T)` → `(S, 1)`.

    Example:
        >>> fall(np.array([[4.0, 3.0, 2.0, 1.0]]))
        array([[3.]])
    """
    quarter = max(1, values.shape[1] // 4)
    return (values[:, :quarter].mean(axis=1) - values[:, -quarter:].mean(axis=1))[:, None]


def drifts(scores: Scores, system: str, baseline: str) -> dict[str, Difference]:
    """What a system's drift, a cosine, has over a baseline's in the second half of training, by column of READINGS."""
    return {name: difference(late(scores, system, name), late(scores, baseline, name)) for name in READINGS}


def drifts_of(found: Mapping[str, Scores], pairs: Iterable[tuple[str, str]]) -> dict[tuple, Difference]:
    """`drifts` of several experiments, by (name of the experiment, system, reading); those without scores are left out.

    pairs: (system, baseline).
    """
    pairs = list(pairs)
    return {
        (where, system, reading): drift
        for where, scores in found.items()
        for system, baseline in (pairs if scores else ())
        for reading, drift in drifts(scores, system, baseline).items()
    }


def distance_over_radius(scores: Scores, system: str) -> Difference:
    """The distance of a pair (root of the mean square) minus the mean radius, averaged over training."""
    distance = np.sqrt(over_training(scores, system, "distance_before"))
    return difference(np.nanmean(distance - over_training(scores, system, "radius"), axis=1, keepdims=True))


def after_first_epoch(scores: Scores, system: str, baseline: str) -> Difference:
    """Validation R@1 after one epoch, system over baseline."""
    first = scores.history[scores.history["epoch"] == 1].pivot(index="seed", columns="system", values="R@1")
    return difference(first[[system]], first[[baseline]])


def epochs_to_target(
    history: pd.DataFrame, systems: Sequence[str], *, baseline: str, within: float = 0.01
) -> pd.DataFrame:
    """How soon systems are where a baseline ends: `within` of the validation R@1 of its best epochs, mean over seeds.

    Args:
        history: of `Scores`, of one protocol.
        systems: to show, in this order; those without a run are left out.

    Returns:
        Columns system; runs; reached, how many come there; epoch, in which, mean over those; earlier, low, high: epochs
        before the baseline, of the seeds with which both come there, with 95 % interval (NaN of fewer than two).
    """
    target = history[history["system"] == baseline].groupby("seed")["R@1"].max().mean() - within
    runs = history.groupby("system")["seed"].nunique()
    there = history[history["R@1"] >= target].groupby(["seed", "system"])["epoch"].min()
    first = there.unstack("system").reindex(columns=runs.index)  # NaN: never
    rows = []
    for system in filter(runs.index.__contains__, systems):
        both = first[[baseline, system]].dropna()
        row = {"system": system, "runs": runs[system], "reached": first[system].count(), "epoch": first[system].mean()}
        if system != baseline and len(both) > 1:
            sooner = difference(both[[baseline]], both[[system]])
            row |= {"earlier": sooner.value, "low": sooner.low, "high": sooner.high}
        rows.append(row)
    return pd.DataFrame(rows, columns=["system", "runs", "reached", "epoch", "earlier", "low", "high"])


def fluctuation(runs: Mapping[tuple[str, int], Result], system: str, seeds: Iterable[int]) -> np.ndarray:
    """Mean absolute change of the radius from one step to the next, `(S, 1)`."""
    return np.array([[runs[system, seed].steps["radius"].diff().abs().mean()] for seed in seeds])

"""Confidence intervals and paired tests by bootstrap (scipy.stats.bootstrap)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Interval(NamedTuple):
    """A mean and its bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap_interval(
    values: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Mean of per-query (or per-seed) values with its percentile bootstrap interval.

    Args:
        values: `(Q,)` per-query metric, e.g. from `retrieval_per_query`.
        groups: `(Q,)` labels of queries that are not independent, such as the five captions of one clip: whole
            groups are resampled.
        level: coverage of the interval.
        resamples: bootstrap samples.
        seed: seed of the resampling.

    Raises:
        ValueError: for no values, or values that are not finite.
    """
    values = _grouped(values, groups)
    mean = float(values.mean())
    if len(values) == 1 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)  # nothing varies, so there is nothing to resample
    result = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=level,
        n_resamples=resamples,
        method="percentile",
        batch=100,  # keeps memory flat for many queries
        rng=np.random.default_rng(seed),
    )
    low, high = result.confidence_interval
    return Interval(mean, float(low), float(high))


def paired_bootstrap(
    ours: ArrayLike,
    base: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Interval of mean(ours − base) over the same queries: the difference is real where it excludes 0.

    Raises:
        ValueError: if the two do not have one value for each of the same queries.
    """
    ours, base = np.asarray(ours, float), np.asarray(base, float)
    if ours.shape != base.shape:
        raise ValueError(f"a paired test needs the same queries: got {ours.shape} and {base.shape}")
    return bootstrap_interval(ours - base, groups=groups, level=level, resamples=resamples, seed=seed)


def _grouped(values: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"values must be finite and of shape (Q,) with Q ≥ 1, got shape {values.shape}")
    if groups is None:
        return values
    groups = np.asarray(groups)
    if groups.shape != values.shape:
        raise ValueError(f"groups must label each of the {len(values)} values, got shape {groups.shape}")
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if np.ptp(counts) != 0:
        raise ValueError("groups must be of one size, otherwise the mean of group means is another mean")
    return np.bincount(inverse, weights=values) / counts

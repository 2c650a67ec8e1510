"""Pseudo-values: a statistic that is no mean over clips, by clip, so that it can be compared as scores are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def pseudo_values(statistic: Callable[[Array], float], values: ArrayLike) -> Array:
    """Jackknife pseudo-values N θ − (N − 1) θ₍₋ᵢ₎ `(N,)` of a statistic that is no mean over clips (Tukey 1958).

    `statistic` makes a number of `values` `(N, ...)`. Taken of each system and seed, they go through `difference` as
    scores do; their mean is θ less its bias of order 1/N. ValueError for N < 2. A median or quantile is not smooth
    enough: its pseudo-values have a wrong variance for any N (Efron 1982, § 3.4).

    >>> pseudo_values(np.mean, [1.0, 2.0, 6.0]).tolist()
    [1.0, 2.0, 6.0]
    """
    values = finite("values", values)
    if (n := len(np.atleast_1d(values))) < 2:
        raise ValueError(f"values must have at least two clips on their first axis, got shape {values.shape}")
    left_out = [statistic(np.delete(values, i, axis=0)) for i in range(n)]
    return finite("statistic", n * float(statistic(values)) - (n - 1) * np.asarray(left_out, np.float64))


def gap_pseudo_values(vectors: ArrayLike) -> Array:
    """`pseudo_values` `(N,)` of Gap, the norm of the mean of vectors `(N, d)`, in one pass.

    >>> gap_pseudo_values([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [5.0, 0.0]
    """
    vectors = finite("vectors", vectors)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(f"vectors must be (N, d) with at least two clips, got shape {vectors.shape}")
    total = vectors.sum(axis=0)
    return np.linalg.norm(total) - np.linalg.norm(total - vectors, axis=-1)


def finite(name: str, values: ArrayLike) -> Array:
    """The values as float64; ValueError for those that are not finite, with their name and place."""
    values = np.asarray(values, np.float64)
    if len(bad := np.argwhere(~np.isfinite(values))):
        cure = "leave out, everywhere, a clip that lacks a score in any seed or system"
        raise ValueError(f"{name} has {len(bad)} values that are not finite, the first at {bad[0].tolist()}: {cure}")
    return values

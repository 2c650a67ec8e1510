"""Values of several tests as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullpush.metrics.inference import Array


def joined(tests: Sequence[Array]) -> Array:
    """Values `(S, N₁)`, `(S, N₂)` … of several tests as one, `(S, N₁ + N₂ …)`, whose mean is the mean of their means.

    >>> float(joined([np.ones((1, 1)), np.zeros((1, 3))]).mean())
    0.5
    """
    items = sum(values.shape[1] for values in tests)
    return np.concatenate([values * items / (len(tests) * values.shape[1]) for values in tests], axis=1)

"""Means with their intervals: over the clips of one model, or over seeds."""

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from pullpush.metrics import Difference, difference


def by_clip(values: Tensor | ArrayLike) -> Difference:
    """The mean over the clips of one model, `(N,)`, with its interval."""
    return difference(np.asarray(values, float)[None])


def by_seed(values: ArrayLike) -> Difference:
    """The mean of one number a seed, with its interval."""
    return difference(np.asarray(values, float)[:, None])

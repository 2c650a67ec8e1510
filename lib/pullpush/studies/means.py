"""Means with their intervals: over the clips of one model, or over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor

from pullpush.metrics import Difference, difference


def by_clip(values: Tensor | pd.Series) -> Difference:
    """The mean over the clips of one model, `(N,)`, with its interval."""
    return difference(np.asarray(values, float)[None])


def by_seed(values: pd.Series) -> Difference:
    """The mean of one number a seed, with its interval."""
    return difference(values.to_numpy(float)[:, None])


def plain(found: Difference) -> str:
    """A mean and its half-width, without a sign.

    >>> plain(by_clip(pd.Series([0.1, 0.2, 0.3])))
    '0.200 ± 0.248'
    """
    return f"{found.value:.3f} ± {found.half_width:.3f}"

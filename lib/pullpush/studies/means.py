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

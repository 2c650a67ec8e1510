"""Means over the clips of one model, with their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor

from pullpush.metrics import Difference, difference


def by_clip(values: Tensor | pd.Series) -> Difference:
    """The mean over the clips of one model, `(N,)`, with its interval."""
    return difference(np.asarray(values, float)[None])

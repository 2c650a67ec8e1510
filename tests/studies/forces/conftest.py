from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F


@pytest.fixture(scope="session")
def unit() -> Callable[..., torch.Tensor]:
    """`unit(n, d, seed)`: n random directions, `(n, d)` float64."""

    def directions(n: int, d: int, seed: int = 0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return F.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)

    return directions

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from embeddings import sphere

# Tiny clips and models, which tests of losses and of training share.
TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("losses", "training")]


@pytest.fixture(scope="session")
def unit() -> Callable[..., torch.Tensor]:
    """`unit(n, d, seed)`: n random directions, `(n, d)` float64."""
    return lambda n, d, seed=0: sphere(n, d, seed=seed)

"""Unit vectors for the tests of losses, and the gradients that reach them."""

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

DOUBLE = torch.float64
DIRECTIONS = ("t2a", "a2t", "both")
each_direction = pytest.mark.parametrize("direction", DIRECTIONS)


def sphere(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random points on the unit sphere, float64."""
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1).to(dtype)


def pairs(n: int, d: int = 6, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Audio and text, `(n, d)` each."""
    audio, text = sphere(2, n, d, seed=seed, dtype=dtype)
    return audio.clone(), text.clone()


def gradients(loss: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """The value of a loss and its gradient in each input."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    value = loss(*leaves)
    return value.detach(), *torch.autograd.grad(value, leaves)


def same_with_gradients(ours: Tensor, theirs: Tensor, leaves: Iterable[Tensor], tolerance: float = 1e-12) -> None:
    """Assert that two losses have one value and the same gradients, and reach the same leaves."""
    leaves = [x for x in leaves if x.requires_grad]
    slopes = [torch.autograd.grad(loss, leaves, allow_unused=True) for loss in (ours, theirs)]
    torch.testing.assert_close((ours, *slopes[0]), (theirs, *slopes[1]), rtol=tolerance, atol=tolerance)


def refuses_bad_pairs(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Assert that a loss of pairs names tensors of another length, and those that are not floating point."""
    audio, text = pairs(3)
    with pytest.raises(ValueError, match="audio with N = 3 and text"):
        loss(audio, text[:2])
    with pytest.raises(TypeError, match="text must be a floating-point tensor"):
        loss(audio, text.long())

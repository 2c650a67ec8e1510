"""The projection: unit length, and nothing explodes at zero."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pullpush.encoders.projection import Projection, normalise


def test_projection_is_linear_relu_linear_normalise():
    torch.manual_seed(0)
    projection = Projection(6, 4, 5).double()
    x = torch.randn(3, 6, dtype=torch.float64)
    first, _, second = projection.layers
    expected = (x @ first.weight.T + first.bias).clamp(min=0) @ second.weight.T + second.bias
    torch.testing.assert_close(projection(x), expected / expected.norm(dim=1, keepdim=True))


def test_hidden_size_defaults_to_outputs():
    assert Projection(6, 4).layers[0].out_features == 4


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(1, 8))
def test_normalising_ignores_scale(scale, size):
    x = torch.arange(1.0, size + 1)[None]
    torch.testing.assert_close(normalise(scale * x), x / x.norm())


def test_zero_stays_zero_with_finite_gradient():
    x = torch.zeros(2, 3, requires_grad=True)
    y = normalise(x)
    y.sum().backward()
    assert torch.equal(y, torch.zeros(2, 3))
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_comes_out_as_unit_float32(dtype):
    y = normalise(torch.full((1, 1000), 60.0, dtype=dtype))
    assert y.dtype == torch.float32
    torch.testing.assert_close(y.norm(), torch.tensor(1.0))


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="outputs=0"):
        Projection(3, 0)

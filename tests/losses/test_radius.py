"""The semantic radius: its constraint, and the network that predicts it."""

import pytest
import torch
from embeddings import DOUBLE
from torch.nn import functional as F

from pullpush.losses import RadiusPredictor, positive_first, radius_constraint


@pytest.mark.parametrize(("radius", "expected"), [(0.0, 0.0), (0.5, 0.0), (0.8, 0.3 / 2), (2.0, 1.5), (-0.4, 0.4)])
def test_constraint_asks_for_zero_to_distance(radius, expected):
    distance = torch.tensor([0.5, 1.0], dtype=DOUBLE) if radius != 2.0 else torch.tensor([0.5, 0.5], dtype=DOUBLE)
    assert radius_constraint(radius, distance).item() == pytest.approx(expected)
    rows = torch.full((2,), radius, dtype=DOUBLE)
    assert radius_constraint(rows, distance).item() == pytest.approx(expected)


def test_constraint_gradcheck_and_bad_shapes():
    radius = torch.tensor([-0.4, 0.2, 3.0], dtype=DOUBLE, requires_grad=True)
    distance = torch.tensor([0.5, 1.0, 1.5], dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(radius_constraint, (radius, distance))
    with pytest.raises(ValueError, match=r"\(N,\)"):
        radius_constraint(0.1, torch.zeros(2, 2))
    with pytest.raises(ValueError, match="one for each row"):
        radius_constraint(torch.zeros(3), torch.zeros(2))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_positive_first_moves_the_diagonal_and_keeps_the_order_of_negatives(n):
    similarity = torch.arange(n * n).view(n, n)
    rows = [[row[i], *(x for j, x in enumerate(row) if j != i)] for i, row in enumerate(similarity.tolist())]
    assert positive_first(similarity).tolist() == rows
    assert positive_first(similarity.T).tolist() == [
        [column[i], *(x for j, x in enumerate(column) if j != i)] for i, column in enumerate(similarity.T.tolist())
    ]


def test_short_batch_is_filled_with_its_own_negatives():
    torch.manual_seed(0)
    predictor = RadiusPredictor(8, hidden=8)
    torch.nn.init.normal_(predictor.layers[-1].weight)
    short = torch.rand(3, 3)
    p, a, b = short[:, :1], short[:, 1:2], short[:, 2:]
    full = torch.cat([p, a, b, a, b, a, b, a], dim=1)
    assert torch.allclose(predictor(short), predictor.layers(full).squeeze(1))
    assert predictor(torch.rand(8, 8)).shape == (8,)
    assert torch.allclose(predictor(p[:1]), predictor.layers(F.pad(p[:1], (0, 7))).squeeze(1))


def test_long_batch_and_wrong_shapes_are_refused():
    predictor = RadiusPredictor(4)
    with pytest.raises(ValueError, match="a batch of 5 does not fit"):
        predictor(torch.zeros(5, 5))
    with pytest.raises(ValueError, match=r"\(N, N\)"):
        predictor(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="at least 1"):
        RadiusPredictor(0)


def test_predictor_starts_as_the_static_radius_and_is_three_layers():
    predictor = RadiusPredictor(6, initial=0.2)
    assert torch.allclose(predictor(torch.randn(6, 6)), torch.full((6,), 0.2))
    assert sum(isinstance(layer, torch.nn.Linear) for layer in predictor.layers) == 3

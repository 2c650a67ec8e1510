"""The regulariser of GLAP's code against a loop over numbers, and at its extremes."""

import math

import pytest
import torch
from embeddings import pairs
from hypothesis import given, settings, strategies as st

from pullpush.losses import Sparsity, sparsity
from pullpush.training import recipe


def loop(embeddings):
    """mean|e|/‖E‖_F, number by number."""
    numbers = [float(x) for row in embeddings for x in row]
    return sum(map(abs, numbers)) / len(numbers) / math.sqrt(sum(x * x for x in numbers))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
def test_equals_the_loop_at_any_scale(n, seed, scale):
    audio, text = pairs(n, seed=seed)
    expected = loop(audio) + loop(text)
    assert sparsity(scale * audio, text).item() == pytest.approx(expected, rel=1e-12)
    assert expected <= 2 / math.sqrt(n * 6) + 1e-12, "the bound that the docstring names"


def test_nothing_at_all_has_no_gradient():
    zeros = torch.zeros(3, 4, requires_grad=True)
    loss = sparsity(zeros, zeros)
    loss.backward()
    assert loss == 0
    assert (zeros.grad == 0).all()


def test_descent_leaves_few_dimensions_in_use():
    embeddings = pairs(8, d=16)[0].requires_grad_()
    start = (embeddings.abs() > 0.05).sum()
    for _ in range(200):
        (gradient,) = torch.autograd.grad(sparsity(embeddings, embeddings), embeddings)
        with torch.no_grad():
            embeddings -= 0.5 * gradient
    assert (embeddings.abs() > 0.05).sum() < start


def test_is_one_word_in_a_recipe():
    terms = recipe("siglip+sparsity", tau=0.07, bias=-10.0, raw_tau=True).terms
    assert [(term.name, term.weight) for term in terms] == [("siglip", 1), ("sparsity", 1)]
    assert terms[0].settings["form"] == "siglip"
    assert isinstance(terms[1].create(batch_size=3), Sparsity)
    assert terms[0].create(batch_size=3).temperature.raw

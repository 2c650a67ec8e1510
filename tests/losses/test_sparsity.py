"""The regulariser of GLAP's code against a loop over numbers, and at its extremes."""

import math

import pytest
import torch
from embeddings import DOUBLE, each_direction, pairs
from hypothesis import given, settings, strategies as st

from pullpush.forces import decompose
from pullpush.losses import SimpleReweight, Sparsity, info_nce, simple_reweight, sparsity
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


@pytest.mark.parametrize("form", ["gradient", "softmax"])
@each_direction
def test_weight_one_is_plain_contrastive(form, direction):
    audio, text = pairs(5)
    expected = info_nce(audio, text, 0.1, direction)
    assert torch.allclose(simple_reweight(audio, text, 1.0, 0.1, direction=direction, form=form), expected)
    module = SimpleReweight(0.1, direction=direction, form=form)
    assert torch.allclose(module(audio, text).value, expected)
    module(audio, text).value.backward()
    assert module.raw.grad != 0


@pytest.mark.parametrize("weight", [0.4, 3.0, -1.0])
def test_gradient_form_scales_p_positive_in_eq_4(weight):
    audio, text = pairs(5)
    leaf = text.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(simple_reweight(audio, leaf, weight, 0.2, direction="t2a"), leaf)
    forces = decompose(text, audio, 0.2)
    expected = (weight * forces.p_positive - 1)[:, None] * audio / 0.2 + forces.push
    assert torch.allclose(5 * gradient, expected, atol=1e-12)


def test_softmax_form_weights_the_exponential_of_the_positive():
    audio, text = pairs(5)
    total = 0.0
    for i in range(5):
        terms = [math.exp(float(text[i] @ audio[j]) / 0.2) * (2.5 if i == j else 1) for j in range(5)]
        total -= math.log(terms[i] / sum(terms)) / 5
    assert simple_reweight(audio, text, 2.5, 0.2, direction="t2a", form="softmax").item() == pytest.approx(total)
    inputs = [x.requires_grad_() for x in pairs(4, d=3)] + [torch.tensor(2.5, dtype=DOUBLE, requires_grad=True)]
    assert torch.autograd.gradcheck(lambda a, t, w: simple_reweight(a, t, w, 0.3, form="softmax"), inputs)

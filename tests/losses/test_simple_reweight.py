"""Simple Reweight against Eq. 4 and the weighted softmax."""

import math

import pytest
import torch
from embeddings import pairs

from pullpush.forces import decompose
from pullpush.losses import (
    SimpleReweight,
    info_nce,
    simple_reweight,
)

DOUBLE = torch.float64


@pytest.mark.parametrize("form", ["gradient", "softmax"])
@pytest.mark.parametrize("direction", ["both", "t2a", "a2t"])
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


def test_reweight_names_bad_options():
    with pytest.raises(ValueError, match="form must be one of"):
        SimpleReweight(form="loss")
    with pytest.raises(ValueError, match="weight must be positive"):
        SimpleReweight(form="softmax", weight=0)
    with pytest.raises(ValueError, match="form must be one of"):
        simple_reweight(torch.ones(1, 2), torch.ones(1, 2), 1.0, form="loss")

"""The sigmoid loss against a double loop over pairs, in both readings of the bias."""

import math

import pytest
import torch
from embeddings import pairs, sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import Offer, SigLIP, siglip
from pullpush.losses._siglip import SigLIPLanguages
from pullpush.losses.offer import apply


def loop(audio, text, tau, bias, form):
    """GLAP Eq. 1, one pair at a time, with log σ(x) = −log(1 + e^−x)."""
    total = 0.0
    for i in range(len(audio)):
        for j in range(len(text)):
            s = float(audio[i] @ text[j])
            logit = (s + bias) / tau if form == "glap" else s / tau + bias
            total += math.log1p(math.exp(-logit * (1 if i == j else -1)))
    return total / len(audio)


@pytest.mark.parametrize("form", ["glap", "siglip"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_equals_the_double_loop(n, form):
    audio, text = pairs(n)
    assert siglip(audio, text, 0.3, -0.8, form).item() == pytest.approx(loop(audio, text, 0.3, -0.8, form), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 8), seed=st.integers(0, 10_000), tau=st.floats(0.05, 1), bias=st.floats(-3, 3))
def test_forms_are_one_family_and_modalities_are_symmetric(n, seed, tau, bias):
    audio, text = pairs(n, seed=seed)
    loss = siglip(audio, text, tau, bias, "glap")
    assert torch.allclose(siglip(audio, text, tau, bias / tau, "siglip"), loss)
    assert torch.allclose(siglip(text, audio, tau, bias, "glap"), loss)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(siglip(audio[order], text[order], tau, bias), loss)


def test_gradcheck_with_learnable_temperature_and_bias():
    audio, text = pairs(4, d=3)
    scalars = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.3, -0.5)]
    for form in ("glap", "siglip"):
        assert torch.autograd.gradcheck(
            lambda a, t, tau, bias, form=form: siglip(a, t, tau, bias, form),
            (audio.requires_grad_(), text.requires_grad_(), *scalars),
        )


def test_module_starts_where_siglip_does_and_clamps():
    for form, bias in (("siglip", -10), ("glap", -1)):
        loss = SigLIP(form=form)
        assert loss.tau.item() == pytest.approx(0.1)
        assert loss.bias.item() == bias
    with torch.no_grad():
        loss.temperature.log_scale.fill_(50.0)
    assert loss.tau.item() == pytest.approx(0.01)
    assert not list(SigLIP(learnable=False).parameters())


def test_unknown_form_is_named():
    with pytest.raises(ValueError, match="form must be one of"):
        siglip(torch.ones(1, 2), torch.ones(1, 2), 0.1, 0.0, "clip")


def test_raw_temperature_learns_as_it_is_and_is_not_clamped():
    audio, text = (x.float() for x in pairs(5))
    raw, log = (SigLIP(0.07, -10.0, form="siglip", raw_tau=kept) for kept in (True, False))
    assert {*raw.state_dict()} == {"temperature.tau", "bias"}
    values = [loss(audio, text).value for loss in (raw, log)]
    torch.testing.assert_close(*values)
    for value in values:
        value.backward()
    # The chain rule: ∂/∂log(1/τ) = −τ ∂/∂τ.
    torch.testing.assert_close(log.temperature.log_scale.grad, -0.07 * raw.temperature.tau.grad)
    with torch.no_grad():
        raw.temperature.tau.fill_(0.001)
    assert raw.tau.item() == pytest.approx(0.001)
    assert not list(SigLIP(learnable=False, raw_tau=True).parameters())


def test_a_bias_can_stay_while_the_temperature_learns():
    loss = SigLIP(0.1, 0.0, learn_bias=False)
    assert [name for name, _ in loss.named_parameters()] == ["temperature.log_scale"]
    assert loss.learnt["bias"] == 0
    audio, text = (x.float() for x in pairs(5))
    torch.testing.assert_close(loss(audio, text).value, SigLIP(0.1, 0.0)(audio, text).value)


@pytest.mark.parametrize("languages", [1, 2, 5])
def test_it_is_the_mean_over_languages(languages):
    audio = sphere(6, 4, seed=0, dtype=torch.float64)
    texts = [sphere(6, 4, seed=1 + number, dtype=torch.float64) for number in range(languages)]
    offer = Offer(audio, texts[0], tuple(texts[1:]))
    expected = torch.stack([SigLIP(0.1, -0.5).double()(audio, text).value for text in texts]).mean()
    torch.testing.assert_close(apply(SigLIPLanguages(0.1, -0.5).double(), offer).value, expected)


def test_one_bias_and_one_temperature_learn_from_all_languages():
    audio, first, second = (sphere(6, 4, seed=number, dtype=torch.float64) for number in range(3))
    together = SigLIPLanguages(0.1, -0.5).double()
    apply(together, Offer(audio, first, (second,))).value.backward()
    each = []
    for text in (first, second):
        alone = SigLIP(0.1, -0.5).double()
        alone(audio, text).value.backward()
        each.append(alone.bias.grad)
    torch.testing.assert_close(together.bias.grad, torch.stack(each).mean())

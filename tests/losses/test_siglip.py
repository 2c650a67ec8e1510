"""The sigmoid loss against a double loop over pairs, in both readings of the bias."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pullpush.losses import SigLIP, siglip


def embeddings(n, d=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: F.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)  # noqa: E731
    return draw(), draw()


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
    audio, text = embeddings(n)
    assert siglip(audio, text, 0.3, -0.8, form).item() == pytest.approx(loop(audio, text, 0.3, -0.8, form), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 8), seed=st.integers(0, 10_000), tau=st.floats(0.05, 1), bias=st.floats(-3, 3))
def test_forms_are_one_family_and_modalities_are_symmetric(n, seed, tau, bias):
    audio, text = embeddings(n, seed=seed)
    loss = siglip(audio, text, tau, bias, "glap")
    assert torch.allclose(siglip(audio, text, tau, bias / tau, "siglip"), loss)
    assert torch.allclose(siglip(text, audio, tau, bias, "glap"), loss)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(siglip(audio[order], text[order], tau, bias), loss)


def test_glap_s_printed_start_is_finite():
    audio, text = embeddings(4)
    assert siglip(audio.float(), text.float(), 0.07, -10.0).isfinite()


def test_gradcheck_with_learnable_temperature_and_bias():
    audio, text = embeddings(4, d=3)
    scalars = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.3, -0.5)]
    for form in ("glap", "siglip"):
        assert torch.autograd.gradcheck(
            lambda a, t, tau, bias, form=form: siglip(a, t, tau, bias, form),
            (audio.requires_grad_(), text.requires_grad_(), *scalars),
        )


def test_module_starts_where_siglip_does_and_clamps():
    loss = SigLIP()
    assert loss.tau.item() == pytest.approx(0.1)
    assert loss.bias.item() == -10
    with torch.no_grad():
        loss.temperature.log_scale.fill_(50.0)
    assert loss.tau.item() == pytest.approx(0.01)
    assert not list(SigLIP(learnable=False).parameters())


def test_unknown_form_is_named():
    with pytest.raises(ValueError, match="form must be one of"):
        siglip(torch.ones(1, 2), torch.ones(1, 2), 0.1, 0.0, "clip")

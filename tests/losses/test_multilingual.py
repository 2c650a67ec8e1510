"""ML-CLAP and CACL against loops over the sums as ATRI prints them; all three against each other."""

import math

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import cacl, info_nce, kcl, ml_clap


def loop_uv(u, v, tau):
    """Eq. 13."""
    total = 0.0
    for i in range(len(u)):
        forth = [math.exp(float(u[i] @ v[j]) / tau) for j in range(len(u))]
        back = [math.exp(float(v[i] @ u[j]) / tau) for j in range(len(u))]
        total -= math.log(forth[i] / sum(forth)) + math.log(back[i] / sum(back))
    return total


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("tau", [0.07, 0.5])
def test_cacl_equals_the_loop(n, tau):
    audio, english, other = sphere(3, n, 6)
    total = loop_uv(audio, english, tau) + loop_uv(audio, other, tau) + loop_uv(english, other, tau)
    assert cacl(audio, english, other, tau).item() == pytest.approx(total / (6 * n), abs=1e-12)  # Eq. 12


@pytest.mark.parametrize("n", [1, 2, 6])
def test_ml_clap_equals_the_loop_with_its_directions_averaged(n):
    audio, text = sphere(2, n, 6)
    assert ml_clap(audio, text, 0.1).item() == pytest.approx(loop_uv(audio, text, 0.1) / (2 * n), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_cacl_does_not_know_the_order_of_clips_or_the_roles(n, seed):
    roles = sphere(3, n, 5, seed=seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    loss = cacl(*roles)
    assert torch.allclose(cacl(*roles[:, order]), loss)
    assert torch.allclose(cacl(*roles.flip(0)), loss)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), k=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_kcl_is_the_mean_of_ml_clap_over_the_languages(n, k, seed):
    audio, texts = sphere(n, 5, seed=seed), sphere(n, k, 5, seed=seed + 1)
    assert torch.allclose(kcl(audio, texts), torch.stack([ml_clap(audio, t) for t in texts.unbind(1)]).mean())


def test_one_language_is_half_of_info_nce():
    audio, text = sphere(2, 5, 6)
    for candidates in ("language", "all"):
        assert torch.allclose(kcl(audio, text[:, None], candidates=candidates), info_nce(audio, text) / 2)
    assert torch.allclose(ml_clap(audio, text), info_nce(audio, text) / 2)


def test_languages_drawn_for_each_clip_are_not_kcl_even_on_average():
    """One language for the whole batch has KCL as its mean; one for each clip meets negatives in other languages."""
    audio, texts = sphere(3, 5), sphere(3, 2, 5, seed=1)
    draws = torch.cartesian_prod(*[torch.arange(2)] * 3)
    mixed = torch.stack([ml_clap(audio, texts[torch.arange(3), draw]) for draw in draws]).mean()
    assert not torch.allclose(mixed, kcl(audio, texts))

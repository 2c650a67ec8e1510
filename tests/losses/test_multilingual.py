"""ML-CLAP and CACL against loops over the sums as ATRI prints them; all three against each other."""

import math

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import CACL, KCL, MLCLAP, cacl, info_nce, kcl, ml_clap

sizes = {"n": st.integers(1, 6), "k": st.integers(1, 4), "seed": st.integers(0, 10_000)}


def dot(u, v):
    return sum(x * y for x, y in zip(u.tolist(), v.tolist(), strict=True))


def loop_uv(u, v, tau):
    """Eq. 13."""
    total = 0.0
    for i in range(len(u)):
        forth = [math.exp(dot(u[i], v[j]) / tau) for j in range(len(u))]
        back = [math.exp(dot(v[i], u[j]) / tau) for j in range(len(u))]
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
@given(**sizes)
def test_kcl_is_the_mean_of_ml_clap_over_the_languages(n, k, seed):
    audio, texts = sphere(n, 5, seed=seed), sphere(n, k, 5, seed=seed + 1)
    assert torch.allclose(kcl(audio, texts), torch.stack([ml_clap(audio, t) for t in texts.unbind(1)]).mean())


def test_one_language_is_half_of_info_nce():
    audio, text = sphere(2, 5, 6)
    for candidates in ("language", "all"):
        assert torch.allclose(kcl(audio, text[:, None], candidates=candidates), info_nce(audio, text) / 2)
    assert torch.allclose(ml_clap(audio, text), info_nce(audio, text) / 2)


def test_one_clip_has_nothing_to_push_away_from():
    audio, texts = sphere(1, 6), sphere(1, 3, 6, seed=1)
    assert kcl(audio, texts).item() == 0
    assert ml_clap(audio, texts[:, 0]).item() == 0
    assert cacl(audio, texts[:, 0], texts[:, 1]).item() == 0
    # Over all languages the clip's own other texts remain.
    assert kcl(audio, texts, candidates="all") > 0


def test_collapsed_embeddings_cost_log_of_the_candidates():
    audio, texts = torch.ones(6, 4).double() / 2, torch.ones(6, 3, 4).double() / 2
    assert kcl(audio, texts).item() == pytest.approx(math.log(6))
    assert cacl(audio, audio, audio).item() == pytest.approx(math.log(6))
    assert kcl(audio, texts, candidates="all").item() == pytest.approx((math.log(18) + math.log(6)) / 2)


def test_equal_texts_in_all_languages_make_one_loss_of_all():
    audio, text = sphere(2, 5, 6)
    assert torch.allclose(kcl(audio, text[:, None].expand(5, 4, 6)), ml_clap(audio, text))


def test_languages_drawn_for_each_clip_are_not_kcl_even_on_average():
    """One language for the whole batch has KCL as its mean; one for each clip meets negatives in other languages."""
    audio, texts = sphere(3, 5), sphere(3, 2, 5, seed=1)
    draws = torch.cartesian_prod(*[torch.arange(2)] * 3)
    mixed = torch.stack([ml_clap(audio, texts[torch.arange(3), draw]) for draw in draws]).mean()
    assert not torch.allclose(mixed, kcl(audio, texts))


def test_gradcheck_of_cacl_and_ml_clap():
    roles = [role.clone().requires_grad_() for role in sphere(3, 3, 4)]
    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cacl, (*roles, tau))
    assert torch.autograd.gradcheck(ml_clap, (*roles[:2], tau))


@pytest.mark.parametrize("candidates", ["language", "all"])
def test_modules_hold_the_temperature_and_nothing_else(candidates):
    audio, texts = sphere(4, 5), sphere(4, 3, 5, seed=1)
    cases = (
        (MLCLAP, (audio, texts[:, 0]), ml_clap(audio, texts[:, 0], 0.2), {}),
        (CACL, (audio, texts[:, 0], texts[:, 1]), cacl(audio, texts[:, 0], texts[:, 1], 0.2), {}),
        (KCL, (audio, texts), kcl(audio, texts, 0.2, candidates=candidates), {"candidates": candidates}),
    )
    for make, inputs, expected, options in cases:
        assert make(0.2, **options)(*inputs).value.item() == pytest.approx(expected.item(), rel=1e-6)
        assert not list(make(0.2, **options).parameters())
        learnable = make(0.2, learnable=True, **options)
        learnable(*inputs).value.backward()
        assert learnable.temperature.log_scale.grad != 0
        with torch.no_grad():
            learnable.temperature.log_scale.fill_(50)
        assert learnable.tau.item() == pytest.approx(0.01)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="floating-point"):
        kcl(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 2, 3))
    with pytest.raises(TypeError, match="boolean"):
        kcl(torch.zeros(2, 3), torch.zeros(2, 2, 3), present=torch.ones(2, 2))
    with pytest.raises(ValueError, match="row i of each"):
        cacl(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3, 3))

"""Focal loss against loops over numbers, its limits, and hard-pair weighting."""

import math

import pytest
import torch
from embeddings import each_direction, gradients, pairs
from hypothesis import given, settings, strategies as st

from pullpush.losses import focal, info_nce


def by_loops(audio, text, gamma, tau, direction):
    """−(1 − P⁺)^γ log P⁺, number by number."""
    if direction == "both":
        return by_loops(audio, text, gamma, tau, "t2a") + by_loops(audio, text, gamma, tau, "a2t")
    anchors, candidates = (text, audio) if direction == "t2a" else (audio, text)
    total = 0.0
    for i, anchor in enumerate(anchors):
        weights = [math.exp(float(anchor @ candidate) / tau) for candidate in candidates]
        p = weights[i] / sum(weights)
        total -= (1 - p) ** gamma * math.log(p)
    return total / len(anchors)


@pytest.mark.parametrize("detach", [False, True])
@each_direction
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 5.0])
def test_equals_the_loops(gamma, direction, detach):
    audio, text = pairs(6)
    found = focal(audio, text, gamma, 0.2, direction=direction, detach=detach)
    assert found.item() == pytest.approx(by_loops(audio, text, gamma, 0.2, direction), abs=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_held_constant_the_weight_multiplies_the_gradient_of_each_pair(gamma):
    audio, text = pairs(5)
    found = gradients(lambda a, t: focal(a, t, gamma, 0.2, direction="t2a", detach=True), audio, text)
    p = (text @ audio.T / 0.2).softmax(dim=1).diagonal()
    for i in range(5):
        own = gradients(lambda a, t, i=i: -(t @ a.T / 0.2).log_softmax(dim=1)[i, i], audio, text)[2][i]
        torch.testing.assert_close(5 * found[2][i], (1 - p[i]) ** gamma * own)


@settings(max_examples=40, deadline=None)
@given(
    gamma=st.floats(0, 6),
    more=st.floats(0, 3),
    tau=st.floats(0.02, 2),
    n=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_lies_between_zero_and_infonce_and_falls_with_gamma(gamma, more, tau, n, seed):
    audio, text = pairs(n, d=4, seed=seed)
    little, much = focal(audio, text, gamma, tau), focal(audio, text, gamma + more, tau)
    assert 0 <= much <= little <= info_nce(audio, text, tau) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_is_finite_and_exact_where_the_positive_s_probability_rounds_to_one(gamma, detach):
    same = torch.eye(3)  # −log P⁺ = log(1 + 2e⁻¹⁰⁰) ≈ 1 − P⁺
    value, *slopes = gradients(lambda a, t: focal(a, t, gamma, 0.01, direction="t2a", detach=detach), same, same)
    assert value.item() == pytest.approx((2 * math.exp(-100)) ** (1 + gamma), rel=1e-3, abs=1e-44)
    assert all(slope.isfinite().all() for slope in slopes)
    one = sum(gradients(lambda a, t: focal(a, t, gamma, 0.01, detach=detach), same[:1], same[:1]))
    assert one.count_nonzero() == 0

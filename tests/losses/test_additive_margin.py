"""The additive margin against loops over numbers, the forces at its probabilities, and what a support vector gains."""

import math

import pytest
import torch
from embeddings import DOUBLE, each_direction, gradients, pairs
from hypothesis import given, settings, strategies as st

from pullpush.losses import additive_margin, support_vector


def by_loops(audio, text, margin, tau, direction):
    """AM-Softmax Eq. 6, number by number."""
    if direction == "both":
        return by_loops(audio, text, margin, tau, "t2a") + by_loops(audio, text, margin, tau, "a2t")
    anchors, candidates = (text, audio) if direction == "t2a" else (audio, text)
    total = 0.0
    for i, anchor in enumerate(anchors):
        own = math.exp((float(anchor @ candidates[i]) - margin) / tau)
        others = sum(math.exp(float(anchor @ one) / tau) for j, one in enumerate(candidates) if j != i)
        total -= math.log(own / (own + others))
    return total / len(anchors)


@each_direction
@pytest.mark.parametrize("margin", [-0.4, 0.1, 1.5])
def test_equals_the_loops(margin, direction):
    audio, text = pairs(6)
    found = additive_margin(audio, text, margin, 0.2, direction=direction)
    assert found.item() == pytest.approx(by_loops(audio, text, margin, 0.2, direction), abs=1e-12)


def test_gradient_is_that_of_infonce_at_other_probabilities():
    audio, text = pairs(5)
    found = gradients(lambda a, t: additive_margin(a, t, -0.3, 0.2, direction="t2a"), audio, text)
    one = torch.eye(5, dtype=DOUBLE)
    error = ((text @ audio.T + 0.3 * one) / 0.2).softmax(dim=1) - one  # P − δ of Eq. 4
    torch.testing.assert_close(5 * found[2], error @ audio / 0.2)
    torch.testing.assert_close(5 * found[1], error.T @ text / 0.2)


@settings(max_examples=40, deadline=None)
@given(
    margin=st.floats(-2, 2), more=st.floats(0, 1), tau=st.floats(0.05, 2), n=st.integers(1, 7), seed=st.integers(0, 99)
)
def test_a_greater_margin_costs_more_but_no_more_than_itself(margin, more, tau, n, seed):
    audio, text = pairs(n, d=4, seed=seed)
    low, high = additive_margin(audio, text, margin, tau), additive_margin(audio, text, margin + more, tau)
    assert -1e-9 <= high - low <= 2 * more / tau + 1e-9  # the slope of each direction is (1 − P⁺)/τ
    assert n > 1 or low == high == 0


def test_a_support_vector_raises_the_positive_s_similarity_as_a_negative_margin_does():
    audio, text = pairs(6)
    gained = (support_vector(text, audio, 0.3) * audio).sum(dim=1) - (text * audio).sum(dim=1)
    torch.testing.assert_close(gained, 0.3 * (audio - text).norm(dim=1) / 2)

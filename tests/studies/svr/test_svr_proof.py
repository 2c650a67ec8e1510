"""The proof of SVR's push holds on embeddings whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.losses import svr
from pullpush.studies.svr import proof


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(2, 10),
    d=st.integers(2, 9),
    radius=st.floats(-0.5, 2.0),
    tau=st.sampled_from([0.05, 0.07, 0.5]),
    alpha=st.sampled_from([0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_the_proof_holds_to_the_last_digits(n, d, radius, tau, alpha, seed):
    table = proof.proof_errors(unit(n, d, seed), unit(n, d, seed + 1000), radius, tau, alpha)
    assert table["equation"].tolist() == ["Eq. 15", "Eq. 13", "Eq. 16", "Eq. 17", "Eq. 18"]
    assert (table["error"] <= 1e-11 * table["scale"].clip(lower=1)).all()


def test_without_a_radius_the_pushes_sum_to_that_of_infonce():
    text, audio = unit(8, 6), unit(8, 6, 1)
    pushes = proof.push_by_negative(text, audio, 0.0, 0.1)
    torch.testing.assert_close(pushes.sum(1), decompose(text, audio, 0.1).push)
    assert torch.equal(pushes.diagonal().T, torch.zeros_like(text)), "the positive does not push"


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_pushes_are_the_gradient_but_for_the_positive(similarity):
    """By finite differences of the loss in the scores of the negatives alone."""
    text, audio, radius, tau = unit(5, 4), unit(5, 4, 1), 0.3, 0.2
    anchor = text.clone().requires_grad_()
    loss = svr(audio, anchor, radius, tau, similarity=similarity, positive_in_denominator=False)
    (gradient,) = torch.autograd.grad(loss * 5, anchor)
    with_positive = proof.push_by_negative(text, audio, radius, tau, similarity=similarity).sum(1)
    # Without the positive in the denominator, weights of negatives sum to one; the pull is −∂s⁺/∂t.
    moved = text + radius * F.normalize(audio - text, dim=1)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    p = (moved @ audio.T / tau).softmax(1).diagonal()
    again = text.clone().requires_grad_()
    point = again + radius * F.normalize(audio - again, dim=1)
    point = F.normalize(point, dim=1) if similarity == "cosine" else point
    (pull,) = torch.autograd.grad(-((point * audio).sum(1) / tau).sum(), again)
    torch.testing.assert_close(gradient, pull + with_positive / (1 - p)[:, None])


def test_the_dot_product_follows_the_law_and_the_cosine_departs():
    table = proof.departure(unit(8, 6), unit(8, 6, 1), 0.1, radii=[0.0, 0.3, 0.8])
    dot, cosine = (table[table["similarity"] == name].reset_index(drop=True) for name in ("dot", "cosine"))
    assert dot["error"].max() < 1e-12
    np.testing.assert_allclose(dot["parallel"], 1)
    assert dot["perpendicular"].is_monotonic_decreasing
    assert cosine["error"][0] < 1e-12, "at R = 0 both are the same on the sphere"
    assert (cosine["error"][1:] > 1e-3).all()


def test_as_the_radius_grows_the_parallel_part_stays_and_the_other_goes():
    fan = proof.push_fan(unit(9, 6), unit(9, 6, 1), 0.2, fractions=(0.0, 0.5, 1.0))
    held, followed = (fan[fan["weights"] == name] for name in ("held", "of t_sup"))
    np.testing.assert_allclose(held["parallel"], held["parallel"].iloc[0])
    np.testing.assert_allclose(held["perpendicular"] / held["perpendicular"].iloc[0], [1, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(followed.iloc[0, 2:].astype(float), held.iloc[0, 2:].astype(float))
    assert abs(followed["parallel"].iloc[-1]) < abs(held["parallel"].iloc[-1]), "surer of its sound, it pushes less"


def test_half_way_is_the_nearest_radius_of_the_cosine():
    table = proof.departure(unit(5, 4), unit(5, 4, 1), 0.1, radii=[0.0, 0.4, 0.9])
    row = proof.half_way(table, 1.0)
    assert (row["similarity"], row["radius"]) == ("cosine", 0.4)

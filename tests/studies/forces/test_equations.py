"""Tests of the equations against autograd, on embeddings of random directions."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from pullpush.studies.forces import equations


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 20), d=st.integers(2, 12), tau=st.sampled_from([0.02, 0.07, 0.5, 1.0]), seed=st.integers(0, 99))
def test_the_equations_hold_to_the_last_digits(unit, n, d, tau, seed):
    table = equations.equation_errors(unit(n, d, seed), unit(n, d, seed + 1000), tau)
    assert table["equation"].tolist() == ["Eq. 1–4", "§2", "§2", "Eq. 12"]
    assert (table["error"] <= 1e-12 * table["scale"].clip(lower=1)).all()


def test_the_equations_hold_for_single_precision_embeddings_too(unit):
    table = equations.equation_errors(unit(8, 6).float(), unit(8, 6, 1).float(), 0.07)
    assert (table["error"] < 1e-12).all()


def test_the_gradient_of_every_caption_is_pull_plus_push(unit):
    found = equations.gradient_errors(unit(8, 6), unit(8, 6, 1), 0.07)
    assert 0 <= found.value < 1e-12
    assert (found.seeds, found.clips) == (1, 8)

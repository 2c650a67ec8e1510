"""The measurements of the chapter on forces, on embeddings whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pullpush.book import force_study


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 20), d=st.integers(2, 12), tau=st.sampled_from([0.02, 0.07, 0.5, 1.0]), seed=st.integers(0, 99))
def test_the_equations_hold_to_the_last_digits(n, d, tau, seed):
    table = force_study.equation_errors(unit(n, d, seed), unit(n, d, seed + 1000), tau)
    assert table["equation"].tolist() == ["Eq. 1–4", "§2", "§2", "Eq. 12"]
    assert (table["error"] <= 1e-12 * table["scale"].clip(lower=1)).all()


def test_the_equations_hold_for_single_precision_embeddings_too():
    table = force_study.equation_errors(unit(8, 6).float(), unit(8, 6, 1).float(), 0.07)
    assert (table["error"] < 1e-12).all()


def test_parts_are_means_over_batches_and_do_not_change_from_call_to_call():
    text, audio = unit(40, 8), unit(40, 8, 1)
    one, again, other = (force_study.parts(text, audio, 0.07, 10, batches=5, seed=s) for s in (0, 0, 1))
    assert one.equals(again)
    assert not one.equals(other)
    assert one["perpendicular_over_pull"] == pytest.approx(one["perpendicular"] / one["pull"])
    assert one["sideways_over_pull"] == pytest.approx(one["sideways"] / one["pull"])
    assert 0 <= one["perpendicular_share"] <= 1


def test_a_batch_larger_than_the_set_is_the_set():
    text, audio = unit(12, 8), unit(12, 8, 1)
    whole = force_study.parts(text, audio, 0.07, 12, batches=1)
    larger = force_study.parts(text, audio, 0.07, 500, batches=3)
    np.testing.assert_allclose(whole, larger, rtol=1e-9)


def test_settings_leave_out_batches_that_the_set_cannot_fill():
    models = {("trained", 0): (unit(30, 8), unit(30, 8, 1)), ("untrained", 1): (unit(9, 8), unit(9, 8, 1))}
    table = force_study.parts_by_setting(models, tau=0.1, batch_size=8, taus=(0.05, 0.5), batch_sizes=(4, 8, 24, 64))
    sizes = table[table["setting"] == "batch size"].groupby("model")["value"].apply(list)
    assert sizes["trained"] == [4, 8, 24]
    assert sizes["untrained"] == [4, 8]
    warmth = table[table["setting"] == "temperature"]
    assert warmth.groupby("model")["value"].apply(list)["trained"] == [0.05, 0.5]
    assert table.drop(columns=["model", "setting"]).notna().all(axis=None)


def test_both_settings_measure_the_same_point_alike():
    models = {("trained", 0): (unit(30, 8), unit(30, 8, 1))}
    table = force_study.parts_by_setting(models, tau=0.1, batch_size=8, taus=(0.1,), batch_sizes=(8,))
    first, second = (table.drop(columns=["setting", "value"]).iloc[i] for i in (0, 1))
    assert first.equals(second)


def test_batches_are_held_against_the_whole_only_where_two_fit():
    text, audio = unit(40, 8), unit(40, 8, 1)
    table = force_study.batch_against_whole(text, audio, 0.07, batch_sizes=(4, 20, 21, 40))
    assert table["batch_size"].tolist() == [4, 20]
    assert table["whole"].nunique() == 1
    assert (table["variance"] <= table["batch"] * (1 + 1e-9)).all()
    assert table["cosine"].is_monotonic_increasing, "larger batches come nearer to the whole"
    assert table["variance"].is_monotonic_decreasing


def test_a_set_too_small_for_two_batches_gives_no_rows():
    assert force_study.batch_against_whole(unit(6, 4), unit(6, 4, 1), 0.07).empty


def test_in_the_plane_the_partner_lies_on_the_x_axis_at_its_distance():
    text, audio = unit(20, 8), unit(20, 8, 1)
    groups = [list(range(1, 10)), list(range(10, 20))]
    view = force_study.plane(text, audio, 0, groups, 0.07)
    assert view.partner[0] == pytest.approx((audio[0] - text[0]).norm().item())
    assert view.partner[1] == pytest.approx(0, abs=1e-9)
    assert [points.shape for points in view.negatives] == [(9, 3), (10, 3)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_the_plane_probabilities_and_pushes_are_those_of_the_loss(count):
    text, audio, tau = unit(20, 8), unit(20, 8, 1), 0.2
    groups = [list(range(1 + 5 * k, 6 + 5 * k)) for k in range(count)]
    view = force_study.plane(text, audio, 0, groups, tau)
    along = F.normalize(audio[0] - text[0], dim=0)
    for rows, points, push in zip(groups, view.negatives, view.pushes, strict=True):
        scores = [math.exp(text[0] @ audio[j] / tau) for j in [0, *rows]]
        expected = np.array(scores[1:]) / sum(scores)
        np.testing.assert_allclose(points[:, 2], expected, rtol=1e-9)
        np.testing.assert_allclose(points[:, 0], [(audio[j] - text[0]) @ along for j in rows], atol=1e-9)
        force = sum(p * audio[j] for p, j in zip(expected, rows, strict=True)) / tau
        assert push[0] == pytest.approx(-(force @ along).item())
        sideways = (force - (force @ along) * along).norm().item()
        assert abs(push[1]) <= sideways * (1 + 1e-9)
        if count == 1:
            assert abs(push[1]) == pytest.approx(sideways), "the plane of one group holds all of its push"


def test_the_axes_of_the_plane_are_perpendicular():
    # A negative that differs from the anchor only along û must lie on the x-axis.
    text, audio = unit(6, 5), unit(6, 5, 1)
    audio[3] = text[0] + 0.4 * (audio[0] - text[0])
    view = force_study.plane(text, audio, 0, [[1, 2, 3], [3, 4, 5]], 0.07)
    assert view.negatives[0][2, 1] == pytest.approx(0, abs=1e-9)
    assert view.negatives[1][0, 1] == pytest.approx(0, abs=1e-9)

"""The measurements of the chapter on SVR, on embeddings whose answer is known and on a tiny world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from miniature import SMALL
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.lab import compute, material
from pullpush.lab.experiments import Experiment
from pullpush.lab.ledger import Ledger
from pullpush.losses import info_nce
from pullpush.losses.svr import svr
from pullpush.metrics import difference
from pullpush.metrics.inference import holm
from pullpush.studies.svr import svr as svr_study
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import on_features
from pullpush.training.recipes import recipe


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


# The proof


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
    table = svr_study.proof_errors(unit(n, d, seed), unit(n, d, seed + 1000), radius, tau, alpha)
    assert table["equation"].tolist() == ["Eq. 15", "Eq. 13", "Eq. 16", "Eq. 17", "Eq. 18"]
    assert (table["error"] <= 1e-11 * table["scale"].clip(lower=1)).all()


def test_without_a_radius_the_pushes_sum_to_that_of_infonce():
    text, audio = unit(8, 6), unit(8, 6, 1)
    pushes = svr_study.push_by_negative(text, audio, 0.0, 0.1)
    torch.testing.assert_close(pushes.sum(1), decompose(text, audio, 0.1).push)
    assert torch.equal(pushes.diagonal().T, torch.zeros_like(text)), "the positive does not push"


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_pushes_are_the_gradient_but_for_the_positive(similarity):
    """By finite differences of the loss in the scores of the negatives alone."""
    text, audio, radius, tau = unit(5, 4), unit(5, 4, 1), 0.3, 0.2
    anchor = text.clone().requires_grad_()
    loss = svr(audio, anchor, radius, tau, similarity=similarity, positive_in_denominator=False)
    (gradient,) = torch.autograd.grad(loss * 5, anchor)
    with_positive = svr_study.push_by_negative(text, audio, radius, tau, similarity=similarity).sum(1)
    # Without the positive in the denominator, weights of negatives sum to one; the pull is −∂s⁺/∂t.
    moved = text + radius * F.normalize(audio - text, dim=1)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    p = (moved @ audio.T / tau).softmax(1).diagonal()
    again = text.clone().requires_grad_()
    point = again + radius * F.normalize(audio - again, dim=1)
    point = F.normalize(point, dim=1) if similarity == "cosine" else point
    (pull,) = torch.autograd.grad(-((point * audio).sum(1) / tau).sum(), again)
    torch.testing.assert_close(gradient, pull + with_positive / (1 - p)[:, None])


def test_on_the_sphere_nothing_points_outwards():
    text, audio = unit(6, 5), unit(6, 5, 1)
    pushes = svr_study.push_by_negative(text, audio, 0.4, 0.1, on_sphere=True)
    assert (pushes * text[:, None]).sum(-1).abs().max() < 1e-12


def test_the_dot_product_follows_the_law_and_the_cosine_departs():
    table = svr_study.departure(unit(8, 6), unit(8, 6, 1), 0.1, radii=[0.0, 0.3, 0.8])
    dot, cosine = (table[table["similarity"] == name].reset_index(drop=True) for name in ("dot", "cosine"))
    assert dot["error"].max() < 1e-12
    np.testing.assert_allclose(dot["parallel"], 1)
    assert dot["perpendicular"].is_monotonic_decreasing
    assert cosine["error"][0] < 1e-12, "at R = 0 both are the same on the sphere"
    assert (cosine["error"][1:] > 1e-3).all()


def test_two_infonce_are_twice_the_parts_of_one_in_one_direction():
    text, audio = unit(12, 6), unit(12, 6, 1)
    losses = svr_study.text_losses(0.1, 0.2, [("gradient", 1.0), ("softmax", 1.0)])
    table = svr_study.gradient_parts(text, audio, 0.1, losses, 6).set_index("loss")
    one, two = table.loc["InfoNCE"], table.loc["InfoNCE twice"]
    np.testing.assert_allclose(two[["parallel", "perpendicular"]], 2 * one[["parallel", "perpendicular"]])
    assert two["drift"] == pytest.approx(one["drift"])
    for form in ("gradient", "softmax"):
        np.testing.assert_allclose(table.loc[f"Simple Reweight ({form}), w = 1.00"], one)


def test_parts_are_those_of_the_gradient_on_the_sphere():
    text, audio = unit(4, 5), unit(4, 5, 1)
    own = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    row = svr_study.gradient_parts(text, audio, 0.1, own, 4).iloc[0]
    step = -decompose(text, audio, 0.1).gradient
    step = step - (step * text).sum(1, keepdim=True) * text
    way = audio - (audio * text).sum(1, keepdim=True) * text
    way = way / way.norm(dim=1, keepdim=True)
    along = (step * way).sum(1)
    assert row["parallel"] == pytest.approx(along.abs().mean().item())
    assert row["perpendicular"] == pytest.approx((step - along[:, None] * way).norm(dim=1).mean().item())
    assert row["drift"] == pytest.approx((along / step.norm(dim=1)).mean().item())


def test_a_radius_changes_weights_and_forces_and_reaches_the_sound():
    text, audio = unit(12, 6), unit(12, 6, 1)
    table = svr_study.radius_effects(text, audio, 0.1, (-0.3, 0.0, 0.6), 6).set_index("radius")
    one = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    plain = svr_study.gradient_parts(text, audio, 0.1, one, 6)
    for part in ("parallel", "perpendicular"):
        assert table.loc[0.0, part] == pytest.approx(plain.loc[0, part])
    assert table["1 − P_sup"].is_monotonic_decreasing, "nearer to its sound, a support vector is surer of it"
    assert table.loc[0.0, "through t_sup"] == 0
    assert table.loc[0.6, "through t_sup"] > 0
    left = [1 - decompose(text[c], audio[c], 0.1).p_positive.mean().item() for c in (slice(0, 6), slice(6, 12))]
    assert table.loc[0.0, "1 − P_sup"] == pytest.approx(np.mean(left))


def test_simple_reweight_below_one_pulls_harder_along_the_way():
    text, audio = unit(12, 6), unit(12, 6, 1)
    assert svr_study.reweighted_parallel(text, audio, 0.1, 1.0, 6) == pytest.approx(0)
    assert svr_study.reweighted_parallel(text, audio, 0.1, 0.2, 6) > 0


# What is shown of scores

SYSTEMS = {
    "infonce": ("infonce", {}),
    "twice": ("infonce+bi-static-svr", {"radius": 0.0, "learnable": False, "beta": 0.0}),
    "infonce+bi-dynamic-svr": ("infonce+bi-dynamic-svr", {}),
}
BASE, TWICE, SVR = SYSTEMS


@pytest.fixture(scope="module")
def ground(book):
    return material.of(book)


@pytest.fixture(scope="module")
def scores(ground):
    watch = Diagnostics(every=1, tau=0.07)
    evaluations = ("retrieval", "closeness")
    return compute.run(ground, Experiment.of("own", SYSTEMS, seeds=(0, 1), watch=watch, evaluations=evaluations))


@pytest.fixture(scope="module")
def varied(ground):
    two = {name: SYSTEMS[name] for name in (BASE, SVR)}
    rates = {"lr": {1e-3: {"lr": 1e-3}, 2e-3: {"lr": 2e-3}}}
    alone = {"alpha": {0.5: {"alpha": 0.5}}}
    both = Experiment.of("settings", two, settings=rates, seeds=(0, 1))
    return compute.run(ground, both + Experiment.of("settings", {SVR: SYSTEMS[SVR]}, settings=alone, seeds=(0, 1)))


def test_standings_say_how_many_seeds_and_items_and_how_far_from_the_end(scores):
    table = svr_study.standings(scores, ["R@1"])
    assert list(table["system"]) == ["InfoNCE", "InfoNCE twice (R = 0)", "InfoNCE + bi-DynamicSVR"]
    assert list(table.columns) == ["system", "seeds", "test items", "R@1 (%)", "still gained (%)"]
    assert set(table["seeds"]) == {2}
    assert set(table["test items"]) == {24}
    mean = 100 * scores.table.query("system == 'infonce'")["R@1"].mean()
    assert table.loc[0, "R@1 (%)"].startswith(f"{mean:.1f} ±")


def test_standings_of_a_setting_name_its_values(varied):
    table = svr_study.standings(varied, ["R@1"], by=("value", "system"), where={"setting": "alpha"})
    assert list(table["system"]) == ["0.5, InfoNCE + bi-DynamicSVR"]


def test_systems_are_compared_at_the_points_that_both_have(varied):
    found = svr_study.at_every_point(varied, SVR, BASE)
    assert list(found) == [("lr", 1e-3), ("lr", 2e-3)]
    where = {"setting": "lr", "value": 2e-3}
    assert found["lr", 2e-3] == varied.contrast(SVR, BASE, "R@1", where)


def test_differences_are_adjusted_within_their_table_and_scaled():
    one, other = difference([[0.01], [0.02], [0.015]]), difference([[0.08], [0.09], [0.07]])
    table = svr_study.differences({("a",): one, ("b",): other}, ["name"])
    assert list(table["difference"]) == pytest.approx([1.5, 8])
    assert list(table["half width"]) == pytest.approx([100 * one.half_width, 100 * other.half_width])
    assert list(table["p (Holm)"]) == pytest.approx([d.p_holm for d in holm([one, other])])
    shown = svr_study.readable(table)
    assert list(shown.columns) == ["name", "difference [95 %]", "p (Holm)", "seeds × items"]
    assert shown.loc[0, "difference [95 %]"] == "+1.5 ± 1.2 [0.3, 2.7]"
    assert shown.loc[0, "seeds × items"] == "3 × 1"


def test_pairs_are_as_near_as_their_cosines_say(scores):
    cosines = svr_study.positive_cosines(scores, [BASE, SVR])
    assert set(cosines["system"]) == {BASE, SVR}
    means = cosines.groupby(["system", "seed"])["cosine"].mean()
    table = scores.table.set_index(["system", "seed"])["positive cosine"]
    np.testing.assert_allclose(means, table.loc[means.index])


def test_zero_shot_is_measured_for_every_run(runs, heard, book):
    table = svr_study.zero_shots(runs, material.of(book, "scenes").sounds(heard, None))
    assert len(table) == len(runs)
    assert (table["chance"] == 1 / len(heard.bank)).all()


def test_claims_are_found_by_where_they_stand_first():
    ledger = Ledger("02-svr")
    assert "supclap-t13-half-to-one" in svr_study.ids(ledger, "Table 13")
    assert not set(svr_study.ids(ledger, "Table 1")) & set(svr_study.ids(ledger, "Table 13"))
    assert all(ledger.claims[name].judged for name in svr_study.ids(ledger, "Table 2"))


# One number a seed


def test_what_falls_is_the_first_quarter_minus_the_last():
    np.testing.assert_allclose(svr_study.fall(np.array([[4.0, 3.0, 2.0, 1.0], [0.0, 9.0, 9.0, 5.0]])), [[3], [-5]])


def test_numbers_of_a_run_are_in_the_order_of_the_seeds(scores):
    values = svr_study.over_training(scores, SVR, "radius")
    assert values.shape == (2, scores.steps.groupby(["system", "seed"]).size().max())
    for row, seed in zip(values, (0, 1), strict=True):
        assert row[0] == pytest.approx(scores.runs[SVR, seed].steps["radius"].iloc[0])
    last = svr_study.late(scores, SVR, "radius")
    np.testing.assert_allclose(last[:, 0], values[:, values.shape[1] // 2 :].mean(axis=1))


def test_a_system_drifts_as_itself_in_every_reading(scores):
    same = svr_study.drifts(scores, BASE, BASE)
    assert set(same) == set(svr_study.READINGS)
    assert len(svr_study.DRIFT_MEASURES) == len(same)
    assert {one.value for one in same.values()} == {0.0}


def test_the_first_epoch_is_paired_by_seed(scores):
    first = scores.history[scores.history["epoch"] == 1].set_index(["system", "seed"])["R@1"]
    one = svr_study.after_first_epoch(scores, SVR, BASE)
    assert one.seeds == 2
    assert one.value == pytest.approx((first[SVR] - first[BASE]).mean())


def test_a_fixed_radius_neither_fluctuates_nor_reaches_the_distance(scores):
    np.testing.assert_array_equal(svr_study.fluctuation(scores.runs, TWICE, (0, 1)), [[0.0], [0.0]])
    far = svr_study.distance_over_radius(scores, TWICE)
    squared = svr_study.over_training(scores, TWICE, "distance_before")
    assert far.value == pytest.approx(np.sqrt(squared).mean())


# Worlds and radii


def test_the_halves_of_a_bank_share_no_event(world):
    halves = [set(half.split(",")) for half in material.categories(world)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == {event.category for event in world.bank.events}
    sizes = [sum(event.category in half for event in world.bank.events) for half in halves]
    assert abs(sizes[0] - sizes[1]) <= 2


def test_the_radius_is_asked_for_at_every_degree_of_hardness(heard):
    plan = recipe("infonce+bi-dynamic-svr", **on_features(heard), **SMALL, text="hashed")
    table = svr_study.radius_by_hardness(heard, plan, [0], every=4, ks=(0, 2), anchors=4, pool=12)
    assert set(table["kind"]) == {"similar", "graph"}
    assert set(table["K"]) == {0, 2}
    assert sorted(table["step"].unique()) == [1, 5]
    first = table[(table["step"] == 5) & (table["K"] == 0)]["radius"]
    assert first.std() < 0.05, "without hard negatives both kinds ask alike"


def test_hard_negatives_are_compared_with_none_and_the_least_fall_counts():
    rows = [
        (seed, step, "similar", k, k + seed - step * (k == 0)) for seed in (0, 1) for step in range(4) for k in (0, 9)
    ]
    table = pd.DataFrame(rows, columns=["seed", "step", "kind", "K", "radius"])
    grows, falls = svr_study.hardness_effects(table, "similar")
    np.testing.assert_allclose(grows, [[9 + 1.5], [9 + 1.5]])
    np.testing.assert_allclose(falls, [[0], [0]])


def test_too_few_clips_for_a_probe_are_refused(heard):
    with pytest.raises(ValueError, match="too few"):
        svr_study.RadiusProbe(heard.train, every=1, anchors=16)

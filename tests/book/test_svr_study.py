"""The measurements of the chapter on SVR, on embeddings whose answer is known and on a tiny world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from miniature import BOTH, SMALL
from torch.nn import functional as F

from pullpush.book import svr_study
from pullpush.forces import decompose
from pullpush.lab import compare, material
from pullpush.losses import info_nce
from pullpush.losses.svr import svr
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
    losses = svr_study.text_losses(0.1, 0.2, {"gradient": 1.0, "softmax": 1.0})
    table = svr_study.gradient_parts(text, audio, 0.1, losses, 6).set_index("loss")
    one, two = table.loc["InfoNCE"], table.loc["InfoNCE, twice"]
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


# Training


def test_the_papers_gains_are_differences_of_its_tables():
    assert svr_study.paper_gain(1, "bi-DynamicSVR", task="T2A") == pytest.approx(44.16 - 41.87)
    assert svr_study.paper_gain(4, "bi-StaticSVR", "SigLIP", task="A2T") == pytest.approx(55.41 - 47.92)


def test_end_to_end_compares_the_seeds_that_both_have_and_reads_back(runs, heard, tmp_path):
    base, svr = BOTH
    own = {key: run for key, run in runs.items() if key != (svr, 1)}
    tables = svr_study.end_to_end(own, heard.test, [(svr, base), (base, base)])
    assert tables.gains["wins"].tolist()[2:] == ["0/2", "0/2"], "nothing is ahead of itself"
    assert tables.gains["wins"].str.endswith("/1").sum() == 2
    assert len(tables.scores) == len(tables.drift) == 3
    assert tables.drift["radius"].isna().tolist() == [True, True, False]
    for name, table in zip(tables._fields, tables, strict=True):
        table.to_csv(tmp_path / f"end-to-end-{name}.csv", index=False)
    for table, again in zip(tables, svr_study.stored_end_to_end(tmp_path), strict=True):
        pd.testing.assert_frame_equal(table.reset_index(drop=True), again, check_dtype=False)


def test_what_the_book_keeps_can_be_read():
    kept = svr_study.stored_end_to_end()
    assert {"infonce", "infonce+bi-dynamic-svr", "siglip"} <= set(kept.scores["system"])
    assert set(compare.METRICS) <= set(kept.scores.columns)


def test_only_systems_with_a_radius_have_one(runs):
    table = svr_study.radius_table(runs)
    assert set(table["recipe"]) == {"infonce+bi-dynamic-svr"}
    assert table["radius"].iloc[0] == pytest.approx(0.1)


def test_pairs_are_as_near_as_their_cosines_say(runs, heard):
    cosines = svr_study.positive_cosines(runs, heard.test)
    assert len(cosines) == len(runs) * len(heard.test)
    near = svr_study.mean_negative(runs, heard.test)
    np.testing.assert_allclose(cosines.groupby(["system", "seed"])["cosine"].mean(), near["positive"], rtol=1e-5)


def test_zero_shot_is_measured_for_every_run(runs, heard, book):
    table = svr_study.zero_shots(runs, material.of(book, "scenes").sounds(heard, None))
    assert len(table) == len(runs)
    assert (table["chance"] == 1 / len(heard.bank)).all()


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


def test_too_few_clips_for_a_probe_are_refused(heard):
    with pytest.raises(ValueError, match="too few"):
        svr_study.RadiusProbe(heard.train, every=1, anchors=16)

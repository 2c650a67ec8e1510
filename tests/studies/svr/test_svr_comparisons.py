"""Scores as the tables of chapter 2, on a tiny world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.errors import PullPushError
from pullpush.lab import material
from pullpush.metrics import difference
from pullpush.metrics.inference import holm
from pullpush.studies.svr import comparisons

BASE, TWICE, SVR = "infonce", "twice", "infonce+bi-dynamic-svr"


def test_standings_say_how_many_seeds_and_items_and_how_far_from_the_end(svr_scores):
    table = comparisons.standings(svr_scores, ["R@1"])
    assert list(table["system"]) == ["InfoNCE", "InfoNCE twice (R = 0)", "InfoNCE + bi-DynamicSVR"]
    assert list(table.columns) == ["system", "seeds", "test items", "R@1 (%)", "still gained (%)"]
    assert set(table["seeds"]) == {2}
    assert set(table["test items"]) == {24}
    mean = 100 * svr_scores.table.query("system == 'infonce'")["R@1"].mean()
    assert table.loc[0, "R@1 (%)"].startswith(f"{mean:.1f} ±")


def test_standings_of_a_setting_name_its_values(svr_varied):
    table = comparisons.standings(svr_varied, ["R@1"], by=("value", "system"), where={"setting": "alpha"})
    assert list(table["system"]) == ["0.5, InfoNCE + bi-DynamicSVR"]


def test_systems_are_compared_at_the_points_that_both_have(svr_varied):
    found = comparisons.at_every_point(svr_varied, SVR, BASE)
    assert list(found) == [("lr", 1e-3), ("lr", 2e-3)]
    where = {"setting": "lr", "value": 2e-3}
    assert found["lr", 2e-3] == svr_varied.contrast(SVR, BASE, "R@1", where)


def test_a_value_is_compared_with_the_one_that_is_the_start(svr_varied):
    found = comparisons.over_start(svr_varied, BASE, "value", 1e-3)
    assert list(found) == [("value = 0.002", "value = 0.001")]
    where, other = {"value": 2e-3}, {"value": 1e-3}
    (difference_found,) = found.values()
    assert difference_found == svr_varied.contrast(BASE, BASE, "R@1", where, baseline_where=other)


def test_radii_are_gathered_by_trunk(svr_scores):
    table = comparisons.radius_by_trunk({"one": svr_scores, "other": svr_scores}, SVR)
    assert list(table["curve"].unique()) == ["one", "other"]
    assert set(table["system"]) == {SVR}
    halves = [rows["radius"].to_numpy() for _, rows in table.groupby("curve", sort=False)]
    np.testing.assert_array_equal(*halves)


def test_differences_are_adjusted_within_their_table_and_scaled():
    one, other = difference([[0.01], [0.02], [0.015]]), difference([[0.08], [0.09], [0.07]])
    table = comparisons.differences({("a",): one, ("b",): other}, ["name"])
    assert list(table["difference"]) == pytest.approx([1.5, 8])
    assert list(table["half width"]) == pytest.approx([100 * one.half_width, 100 * other.half_width])
    assert list(table["p (Holm)"]) == pytest.approx([d.p_holm for d in holm([one, other])])
    shown = comparisons.readable(table)
    assert list(shown.columns) == ["name", "difference [95 %]", "p (Holm)", "seeds × items"]
    assert shown.loc[0, "difference [95 %]"] == "+1.5 ± 1.2 [0.3, 2.7]"
    assert shown.loc[0, "seeds × items"] == "3 × 1"


def test_pairs_are_as_near_as_their_cosines_say(svr_scores):
    cosines = comparisons.positive_cosines(svr_scores, [BASE, SVR])
    assert set(cosines["system"]) == {BASE, SVR}
    means = cosines.groupby(["system", "seed"])["cosine"].mean()
    table = svr_scores.table.set_index(["system", "seed"])["positive cosine"]
    np.testing.assert_allclose(means, table.loc[means.index])


def test_zero_shot_is_measured_for_every_run(runs, heard, book):
    table = comparisons.zero_shots(runs, material.of(book, "scenes").sounds(heard, None))
    assert len(table) == len(runs)
    assert (table["chance"] == 1 / len(heard.bank)).all()


def test_accuracies_that_were_scored_with_the_runs_are_those_of_their_models(svr_scores, svr_ground):
    scored = comparisons.accuracies(svr_scores, "single events")
    sounds = svr_ground.sounds(svr_ground.view("frozen").data, svr_ground.trunk())
    asked = comparisons.zero_shots(svr_scores.runs, sounds)
    key = ["system", "seed"]
    pd.testing.assert_frame_equal(
        scored.sort_values(key, ignore_index=True), asked.sort_values(key, ignore_index=True)[list(scored)]
    )


def test_what_asks_for_further_data_says_which(runs):
    assert comparisons.routes(("A", "B")) == [("A", "B"), ("B", "A")]
    with pytest.raises(PullPushError, match=r"one dataset here, mine: .* `other`"):
        comparisons.routes(("mine",))
    with pytest.raises(PullPushError, match=r"no labels: .* `zero_shot`"):
        comparisons.zero_shots(runs, {})

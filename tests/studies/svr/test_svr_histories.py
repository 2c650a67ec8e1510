"""One number a seed of what a run did, on runs whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.studies.svr import histories

BASE, TWICE, SVR = "infonce", "twice", "infonce+bi-dynamic-svr"


def test_what_falls_is_the_first_quarter_minus_the_last():
    np.testing.assert_allclose(histories.fall(np.array([[4.0, 3.0, 2.0, 1.0], [0.0, 9.0, 9.0, 5.0]])), [[3], [-5]])


def test_numbers_of_a_run_are_in_the_order_of_the_seeds(svr_scores):
    values = histories.over_training(svr_scores, SVR, "radius")
    assert values.shape == (2, svr_scores.steps.groupby(["system", "seed"]).size().max())
    for row, seed in zip(values, (0, 1), strict=True):
        assert row[0] == pytest.approx(svr_scores.runs[SVR, seed].steps["radius"].iloc[0])
    last = histories.late(svr_scores, SVR, "radius")
    np.testing.assert_allclose(last[:, 0], values[:, values.shape[1] // 2 :].mean(axis=1))


def test_a_system_drifts_as_itself_in_every_reading(svr_scores):
    same = histories.drifts(svr_scores, BASE, BASE)
    assert set(same) == set(histories.READINGS)
    assert len(histories.DRIFT_MEASURES) == len(same)
    assert {one.value for one in same.values()} == {0.0}


def test_drifts_of_several_experiments_skip_those_without_scores(svr_scores):
    found = histories.drifts_of({"here": svr_scores, "nowhere": {}}, [(SVR, BASE)])
    assert list(found) == [("here", SVR, reading) for reading in histories.READINGS]
    assert list(found.values()) == list(histories.drifts(svr_scores, SVR, BASE).values())


def test_the_first_epoch_is_paired_by_seed(svr_scores):
    first = svr_scores.history[svr_scores.history["epoch"] == 1].set_index(["system", "seed"])["R@1"]
    one = histories.after_first_epoch(svr_scores, SVR, BASE)
    assert one.seeds == 2
    assert one.value == pytest.approx((first[SVR] - first[BASE]).mean())


def test_a_fixed_radius_neither_fluctuates_nor_reaches_the_distance(svr_scores):
    np.testing.assert_array_equal(histories.fluctuation(svr_scores.runs, TWICE, (0, 1)), [[0.0], [0.0]])
    far = histories.distance_over_radius(svr_scores, TWICE)
    squared = histories.over_training(svr_scores, TWICE, "distance_before")
    assert far.value == pytest.approx(np.sqrt(squared).mean())


def test_epochs_to_where_a_baseline_ends_count_those_that_come_there():
    curves = {
        "infonce": ([0.1, 0.3, 0.5, 0.5], [0.1, 0.2, 0.3, 0.5]),
        "fast": ([0.5, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.4]),
        "late": ([0.1, 0.2, 0.3, 0.495], [0.1, 0.2, 0.3, 0.48]),
        "never": ([0.1] * 4, [0.2] * 4),
    }
    history = pd.DataFrame(
        [
            (system, seed, epoch, value)
            for system, seeds in curves.items()
            for seed, values in enumerate(seeds)
            for epoch, value in enumerate(values, start=1)
        ],
        columns=["system", "seed", "epoch", "R@1"],
    )
    found = histories.epochs_to_target(history, [*curves, "untried"], baseline="infonce").set_index("system")
    assert found["reached"].to_dict() == {"infonce": 2, "fast": 2, "late": 1, "never": 0}
    assert found["epoch"].dropna().to_dict() == {"infonce": 3.5, "fast": 1.5, "late": 4.0}
    assert found["earlier"].dropna().to_dict() == {"fast": 2.0}  # one seed is too few for the others
    assert found.loc["fast", "low"] == found.loc["fast", "high"] == 2.0

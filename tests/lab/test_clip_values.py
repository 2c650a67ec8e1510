"""Values by clip of many runs in one file."""

from __future__ import annotations

import numpy as np
import pytest

from pullpush.lab import clip_values

DRAW = np.random.default_rng(0).random


def test_runs_come_back_with_their_metrics_those_of_a_trial_in_their_order(tmp_path):
    values = {
        (1, 7): {"R@1": DRAW((5, 2)), "MRV": DRAW(5)},
        (0, 3): {"R@1": DRAW((5, 2))},
        (0, 1): {"R@1": DRAW((5, 2))},
        (2, 0): {"R@1": DRAW((4, 2)), "mAP|10": DRAW(4)},  # fewer clips, and a bar in a name
    }
    clip_values.write(tmp_path / "clips.npz", values)
    found = clip_values.read(tmp_path / "clips.npz")
    assert found.keys() == values.keys()
    assert clip_values.cells(tmp_path / "clips.npz") == list(found)
    assert [cell for cell in found if cell[0] == 0] == [(0, 3), (0, 1)]
    for cell, metrics in values.items():
        assert found[cell].keys() == metrics.keys()
        for name, array in metrics.items():
            assert found[cell][name].dtype == np.float64
            np.testing.assert_array_equal(found[cell][name], array.astype(np.float32))


def test_runs_that_hardly_differ_take_far_less_together(tmp_path):
    one = DRAW(500) < 0.5
    clip_values.write(tmp_path / "one.npz", {(0, 0): {"R@1": one}})
    clip_values.write(tmp_path / "many.npz", {(0, seed): {"R@1": one ^ (np.arange(500) == seed)} for seed in range(20)})
    assert (tmp_path / "many.npz").stat().st_size < 20 / 3 * (tmp_path / "one.npz").stat().st_size


def test_an_array_without_whose_it_is_is_damaged(tmp_path):
    np.savez(tmp_path / "clips.npz", **{"R@1|0": np.zeros((2, 3))})
    with pytest.raises(KeyError):
        clip_values.read(tmp_path / "clips.npz")

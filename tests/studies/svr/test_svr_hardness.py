"""The probe of the predicted radius, on a tiny world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from miniature import SMALL

from pullpush.errors import PullPushError
from pullpush.studies.svr import hardness
from pullpush.training.frozen import on_features
from pullpush.training.recipes import recipe


def test_the_radius_is_asked_for_at_every_degree_of_hardness(heard):
    plan = recipe("infonce+bi-dynamic-svr", **on_features(heard), **SMALL, text="hashed")
    table = hardness.radius_by_hardness(heard, plan, [0], every=4, ks=(0, 2), anchors=4, pool=12)
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
    grows, falls = hardness.hardness_effects(table, "similar")
    np.testing.assert_allclose(grows, [[9 + 1.5], [9 + 1.5]])
    np.testing.assert_allclose(falls, [[0], [0]])


def test_too_few_clips_for_a_probe_are_refused(heard):
    with pytest.raises(ValueError, match="too few"):
        hardness.RadiusProbe(heard.train, every=1, anchors=16)


def test_a_batch_that_the_clips_do_not_fill_is_refused_before_training(heard):
    plan = recipe("infonce+bi-dynamic-svr", **on_features(heard), **SMALL, text="hashed")
    for anchors in (0, len(heard.train) - 2):
        with pytest.raises(PullPushError, match="are too few: hard negatives"):
            hardness.radius_by_hardness(heard, plan, [0], every=4, anchors=anchors)

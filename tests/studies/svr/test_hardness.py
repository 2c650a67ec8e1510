"""The probe of the predicted radius, on a tiny world."""

from __future__ import annotations

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


def test_a_batch_that_the_clips_do_not_fill_is_refused_before_training(heard):
    plan = recipe("infonce+bi-dynamic-svr", **on_features(heard), **SMALL, text="hashed")
    for anchors in (0, len(heard.train) - 2):
        with pytest.raises(PullPushError, match="are too few: hard negatives"):
            hardness.radius_by_hardness(heard, plan, [0], every=4, anchors=anchors)

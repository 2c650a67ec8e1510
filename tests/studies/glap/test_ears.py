"""Several encoders side by side: what is kept of each is put together, and no clip is heard again."""

from __future__ import annotations

import numpy as np
import pytest

from pullpush.data.mixture import MixtureConfig, Part
from pullpush.data.scenes.world import WorldConfig
from pullpush.encoders.features import side_by_side
from pullpush.studies.glap import ears
from pullpush.studies.glap.ears import heard
from pullpush.training.frozen import encoded, trunk_of
from pullpush.training.trunk import Published

MEMBERS = ("yamnet", "speech_embedding")
BOTH = Published("several", {"members": MEMBERS, "pretrained": False})


@pytest.fixture(scope="module")
def world(home):
    sizes = {"n_train": 6, "n_valid": 4, "n_test": 4, "n_single_per_event": 1}
    parts = [Part(WorldConfig("synthetic", seed=seed, **sizes), name, ("eng",)) for seed, name in enumerate("ab")]
    return MixtureConfig(tuple(parts)).load()


def test_features_are_those_of_the_encoder_of_several(world):
    together, at_once = heard(world, BOTH), encoded(world, BOTH)
    assert trunk_of(together) == BOTH
    for name, clips in at_once.splits.items():
        np.testing.assert_array_equal(together.splits[name].audio(slice(None))[0], clips.audio(slice(None))[0])
        assert together.splits[name].captions("mul") == clips.captions("mul")


def test_members_that_were_heard_are_not_heard_again(world, monkeypatch):
    first = heard(world, BOTH)
    monkeypatch.setattr(Published, "load", lambda trunk: pytest.fail(f"{trunk} was loaded"))
    again = heard(world, BOTH)
    assert again.train.key == first.train.key
    swapped = Published("several", {**BOTH.options, "members": MEMBERS[::-1]})
    assert heard(world, swapped).train.key != first.train.key


def test_the_key_is_of_what_comes_of_the_members_and_not_of_how_they_are_put_together(world, monkeypatch):
    before = heard(world, BOTH).train.key
    monkeypatch.setattr(ears, "side_by_side", lambda parts: side_by_side(list(parts)))
    assert heard(world, BOTH).train.key == before
    monkeypatch.setattr(ears, "side_by_side", lambda parts: 2 * side_by_side(parts))
    assert heard(world, BOTH).train.key != before


def test_other_trunks_are_heard_as_they_are(world):
    alone = Published("yamnet", {"pretrained": False}, seed=1)
    assert heard(world, alone).train.key == encoded(world, alone).train.key

"""Views of chapter 5: encoders side by side, and test clips that are cut, quiet or in noise."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pullpush.data.mixture import Mixed, MixtureConfig, Part
from pullpush.data.scenes.altered import First, altered
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.errors import UnknownNameError
from pullpush.lab import compute, session
from pullpush.lab.compute import GALLERIES, WIDE, View
from pullpush.studies.glap import data
from pullpush.studies.glap.data import alter
from pullpush.studies.glap.experiments import Run, on_tests
from pullpush.training import frozen
from pullpush.training.frozen import encoded, on_features, splits_encoder
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published

SMALL = Published("cnn", {"channels": (4, 4, 8)})
BOTH = Published("several", {"members": ("yamnet", "speech_embedding"), "pretrained": False})


@pytest.fixture(scope="module")
def book(home, tmp_path_factory):
    return session.start("05-glap", profile="smoke", out=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def views(book):
    """Scenes of two seeds, through a small network."""
    sizes = {"n_train": 16, "n_valid": 8, "n_test": 10, "n_single_per_event": 1}
    worlds = [load_world(WorldConfig("synthetic", seed=seed, **sizes)) for seed in (0, 1)]
    return [View(book, encoded(world, SMALL)) for world in worlds]


@pytest.fixture(scope="module")
def mixture(home):
    sizes = {"n_train": 6, "n_valid": 4, "n_test": 4, "n_single_per_event": 1}
    parts = [Part(WorldConfig("synthetic", seed=seed, **sizes), name, ("eng",)) for seed, name in enumerate("ab")]
    return MixtureConfig(tuple(parts)).load()


def test_a_test_of_galleries_begins_with_the_clips_of_before(book):
    ground = data.Grounds(replace(book, settings=replace(book.settings, points=None)))
    plain, wide = (ground.view(f"test/yamnet/sound{name}") for name in ("", WIDE))
    clips = [world.test for world in (*plain.tests, *wide.tests)]
    assert [len(each) for each in clips] == [len(clips[0])] * (1 + GALLERIES)
    assert clips[0].captions("mul") == clips[1].captions("mul") != clips[2].captions("mul")


# ---------------------------------------------------------------- encoders side by side


def test_features_are_those_of_the_encoder_of_several(mixture):
    together, encoder = encoded(mixture, BOTH), BOTH.load().eval()
    assert together.trunk == BOTH
    for name, clips in mixture.splits.items():
        for row in range(len(clips)):
            expected = encoder(*clips.audio(row, sample_rate=encoder.sample_rate))
            torch.testing.assert_close(together.splits[name].audio(row)[0], expected, rtol=1e-4, atol=1e-4)
        assert together.splits[name].captions("mul") == clips.captions("mul")


def test_members_that_were_encoded_are_not_encoded_again(mixture, monkeypatch):
    first = encoded(mixture, BOTH)
    monkeypatch.setattr(Published, "load", lambda trunk: pytest.fail(f"{trunk} was loaded"))
    assert encoded(mixture, BOTH).train.key == first.train.key
    swapped = Published("several", {**BOTH.options, "members": BOTH.options["members"][::-1]})
    assert encoded(mixture, swapped).train.key != first.train.key
    side_by_side = frozen.side_by_side
    monkeypatch.setattr(frozen, "side_by_side", lambda parts: 2 * side_by_side(parts))
    assert encoded(mixture, BOTH).train.key != first.train.key, "a key is of what comes of the members"


def test_a_run_on_several_encoders_is_found_where_another_process_trained_it(mixture):
    world = encoded(mixture, BOTH)
    run = Plan(world, recipe("infonce", **on_features(world), epochs=1, languages=("mul",), batch_size=4))
    assert run.order().args[0] == (mixture.config, BOTH)
    run.order()()
    assert run.finished


# ---------------------------------------------------------------- altered clips


@pytest.mark.parametrize("condition", ["first 0.5", "loudest 0.5", "gain -20", "noise 0"])
def test_a_condition_changes_the_features_of_test_clips_and_nothing_else(views, condition):
    plain, other = views[0].data, alter(views[0], condition).data
    assert other.test.key != plain.test.key
    assert other.test.captions("eng") == plain.test.captions("eng")
    assert other.split("singles").key == plain.split("singles").key
    assert not np.allclose(other.test.features, plain.test.features)


def test_features_of_cut_clips_are_those_of_clips_that_were_cut_before(views):
    plain = views[0].data
    cut = altered(plain.test.clips, First(0.5))
    ours = splits_encoder(plain.trunk)(cut).features
    np.testing.assert_allclose(ours, alter(views[0], "first 0.5").data.test.features, atol=1e-6)
    whole = alter(views[0], "first 60").data.test
    np.testing.assert_allclose(whole.features, plain.test.features, atol=1e-6)


@pytest.mark.parametrize("condition", ["slower 2", "whole 2"])
def test_unknown_alterations_are_refused(views, condition):
    with pytest.raises(UnknownNameError, match="alteration"):
        alter(views[0], condition)


def test_a_test_of_several_sources_is_altered_source_by_source(views):
    mixed = Mixed.of("test", [view.data.test for view in views]).select([11, 0, 3])
    both = views[0]._replace(data=replace(views[0].data, splits={"test": mixed}))
    found = alter(both, "first 0.5").data.test
    for row, (source, number) in enumerate(zip((1, 0, 0), (1, 0, 3), strict=True)):
        alone = alter(views[source], "first 0.5").data.test.features[number]
        np.testing.assert_allclose(found.audio(row)[0][0], alone, atol=1e-6)


def test_one_training_serves_all_conditions(book):
    ground = data.Grounds(book)
    run = Run("sigmoid", ("siglip", {}), "yamnet")
    made = on_tests("hearing", [run], ("sound", "music"), altered={"first": (0.5, 1.0)}, seeds=(0,))
    plans = compute.plans_of(ground, made)
    assert len(plans) == 2 * 3
    assert len({plan.key for plan in plans.values()}) == 1
    name = "test/yamnet/sound"
    assert ground.view(f"{name}@first 0.5").data.test.key != ground.view(name).data.test.key


@pytest.mark.parametrize("name", ["all/yamnot", "al/yamnet", "test/yamnet/sounds"])
def test_unknown_views_are_refused(book, name):
    with pytest.raises(UnknownNameError):
        data.Grounds(book).view(name)

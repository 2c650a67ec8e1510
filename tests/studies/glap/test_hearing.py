"""Clips that are tested cut, quiet or in noise: the views, and that what is said of them is what was measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from pullpush.data.mixture import Mixed
from pullpush.data.scenes.altered import First, altered
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders.windows import windows
from pullpush.errors import UnknownNameError
from pullpush.lab import compute, session
from pullpush.lab.compute import View
from pullpush.metrics import difference
from pullpush.studies.glap import figures, hearing
from pullpush.studies.glap.experiments import Run
from pullpush.training.frozen import encoded, splits_encoder
from pullpush.training.trunk import Published

SOUND = "test/small/sound"
TESTS = ("sound", "speech")
SMALL = Published("cnn", {"channels": (4, 4, 8)})


class Two:
    """A ground of two domains: scenes of two seeds, heard by a small network."""

    name, compute_long, parts = "two", False, ("data/scenes",)

    def __init__(self, book):
        sizes = {"n_train": 16, "n_valid": 8, "n_test": 10, "n_single_per_event": 1}
        self.book = book
        self.worlds = {
            name: load_world(WorldConfig("synthetic", seed=seed, **sizes))
            for seed, name in enumerate(("sound", "speech"))
        }
        self.heard = {name: encoded(world, SMALL) for name, world in self.worlds.items()}

    def view(self, name):
        mix, _, rest = name.partition("/")
        world = self.heard[rest.rpartition("/")[2] if mix == "test" else mix]
        return View(self.book, world, {"epochs": 1, "batch_size": 8, "dim": 8})


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return hearing.Altering(Two(session.start("05-glap", profile="smoke", out=tmp_path_factory.mktemp("out"))))


@pytest.fixture(scope="module")
def scores(ground):
    ways = hearing.conditions(hearing.FIRST)[:3]
    run = Run("sigmoid", ("siglip", {}), "small", "sound")
    made = hearing.experiment(run, TESTS, ways, seeds=(0,))
    return compute.compute(ground, replace(made, languages=("eng",)))


def test_what_alters_clips_is_a_part_of_the_ground(ground):
    assert set(ground.parts) == {"data/scenes", "data/altered", "studies/windows"}


def test_a_view_without_a_condition_is_the_grounds_own(ground):
    assert ground.view(SOUND).data is ground.ground.view(SOUND).data


def test_a_system_is_tested_by_the_ears_that_it_learnt_with():
    run = Run("GLAP", ("siglip", {}), "several")
    experiment = hearing.experiment(run, TESTS, hearing.conditions(hearing.GAIN)[:2], seeds=(0,))
    found = {(trial.where["test"], trial.where["heard"]): (trial.data, trial.test) for trial in experiment.trials}
    assert len(found) == 4
    assert found["speech", "gain -10"] == ("all/several", "test/several/speech@gain -10")
    assert found["sound", "whole inf"] == ("all/several", "test/several/sound")


@pytest.mark.parametrize("condition", ["first 0.5", "loudest 0.5", "windows 0.5", "gain -20", "noise 0"])
def test_a_condition_changes_the_features_of_test_clips_and_nothing_else(ground, condition):
    plain, other = ground.view(SOUND).data, ground.view(f"{SOUND}@{condition}").data
    assert other.test.key != plain.test.key
    assert other.test.captions("eng") == plain.test.captions("eng")
    assert other.split("singles").key == plain.split("singles").key
    assert not np.allclose(other.test.features, plain.test.features)


def test_a_cut_longer_than_the_clips_changes_no_feature(ground):
    plain, other = ground.view(SOUND).data.test, ground.view(f"{SOUND}@first 60").data.test
    np.testing.assert_allclose(other.features, plain.features, atol=1e-6)


def test_windows_give_the_mean_of_what_each_of_them_gives(ground):
    view = ground.view(SOUND)
    clips, encoder = view.data.test.clips.select([0, 3]), view.data.trunk.load()
    cut = windows(*clips.audio(slice(None)), 8000)
    with torch.no_grad():
        each = [encoder(wave[None, :length])[0] for wave, length in zip(cut.audio, cut.lengths, strict=True)]
    for row in range(2):
        mean = torch.stack([found for found, clip in zip(each, cut.clip, strict=True) if clip == row]).mean(dim=0)
        ours = ground.view(f"{SOUND}@windows 0.5").data.test.features[[0, 3]][row]
        np.testing.assert_allclose(ours, mean.numpy(), atol=1e-4)


def test_features_of_cut_clips_are_those_of_clips_that_were_cut_before(ground):
    view = ground.view(SOUND)
    cut = altered(view.data.test.clips, First(0.5))
    ours = splits_encoder(view.data.trunk)(cut).features
    np.testing.assert_allclose(ours, ground.view(f"{SOUND}@first 0.5").data.test.features, atol=1e-6)


@pytest.mark.parametrize("name", [f"{SOUND}@slower 2", f"{SOUND}@whole 2"])
def test_unknown_ways_are_refused(ground, name):
    with pytest.raises(UnknownNameError, match="way of hearing"):
        ground.view(name)


def test_clips_that_nobody_has_heard_are_refused(ground):
    raw = View(ground.book, ground.ground.worlds["sound"])
    with pytest.raises(ValueError, match="encoded"):
        hearing.heard_as(raw, "first 1")


def test_a_test_of_several_sources_is_heard_source_by_source(ground):
    view = ground.view(SOUND)
    sources = [view.data.test, ground.view("test/small/speech").data.test]
    mixed = Mixed.of("test", sources).select([11, 0, 3])
    both = view._replace(data=replace(view.data, splits={"test": mixed}))
    heard = hearing.heard_as(both, "first 0.5").data.test
    names = ("speech", "sound", "sound")
    for row, (name, number) in enumerate(zip(names, (1, 0, 3), strict=True)):
        alone = ground.view(f"test/small/{name}@first 0.5").data.test.features[number]
        np.testing.assert_allclose(heard.audio(row)[0][0], alone, atol=1e-6)
    lengths = hearing.durations(mixed)
    assert lengths.tolist() == [
        float(sources[part].clips.lengths[row]) / 16_000 for part, row in ((1, 1), (0, 0), (0, 3))
    ]


def test_one_training_serves_all_conditions(ground, scores):
    plans = compute.plans_of(ground, scores.experiment)
    assert len(plans) == len(TESTS) * 3
    assert len({plan.key for plan in plans.values()}) == 1


def test_the_curve_holds_what_was_scored_under_each_condition(scores):
    curve = hearing.curve(scores)
    assert list(curve)[:4] == ["test", "system", "way", "at"]
    assert len(curve) == 6
    for row in curve.to_dict("records"):
        found = scores.values("sigmoid", "T2A R@1", {"test": row["test"], "heard": f"{row['way']} {row['at']:g}"})
        expected = difference(found)
        assert (row["value"], row["low"], row["high"]) == (expected.value, expected.low, expected.high)
    assert math.isinf(curve.query("way == 'whole'")["at"].iloc[0])


def test_a_length_cuts_the_clips_that_are_longer(ground):
    table = hearing.heard({"sound": ground.ground.worlds[SOUND.rpartition("/")[2]].test}, (0.5, 60.0)).set_index("at")
    assert table.loc[60.0, "share cut"] == 0
    assert table.loc[0.5, "share cut"] == 1


def test_the_figure_draws_every_test_beside_its_whole_clips(scores):
    figure = figures.hearing_curves(hearing.curve(scores), (hearing.FIRST,))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(TESTS)
    (ax,) = figure.axes
    assert len(ax.lines) == 4  # a line and a level of each
    rows = hearing.curve(scores).query("test == 'sound' and way == 'first'")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * rows["value"])

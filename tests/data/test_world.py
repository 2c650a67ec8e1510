"""Splits share no combination of events, are rendered once, and are the same on every machine."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pullpush.data.language.nli import NLIConfig
from pullpush.data.language.wording import LexiconConfig, WordingConfig
from pullpush.data.mixture import MixtureConfig, Part
from pullpush.data.scenes import world as module
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import relevance_matrix
from pullpush.data.scenes.world import WorldConfig, load_world, split_of
from pullpush.errors import UnknownNameError
from pullpush.golden import versions
from pullpush.rewriting import create

CONFIG = WorldConfig(bank="synthetic", n_train=150, n_valid=30, n_test=30, n_single_per_event=2)


@pytest.fixture(scope="module")
def world(module_home):
    return load_world(CONFIG)


def test_no_combination_of_events_is_in_two_splits(world):
    events = [[scene.events for scene in split.columns["scene"]] for split in list(world.splits.values())[:3]]
    train, valid, test = ({tuple(sorted(each)) for each in of_split if len(each) > 1} for of_split in events)
    assert train
    assert valid
    assert test
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_combinations_are_dealt_by_name_in_the_shares_that_are_asked_for(world):
    pairs = [(a, b, c) for a in range(12) for b in range(a) for c in range(b)]
    dealt = [split_of(pair, world.bank, seed=0) for pair in pairs]
    assert dealt.count("train") / len(dealt) == pytest.approx(0.8, abs=0.08)
    assert min(dealt.count("valid"), dealt.count("test")) > 0.05 * len(dealt)
    assert split_of((1, 2), world.bank, seed=0) == split_of((2, 1), world.bank, seed=0)
    assert dealt != [split_of(pair, world.bank, seed=1) for pair in pairs]


def test_waveforms_are_int16_of_the_scenes_lengths(world):
    for split in world.splits.values():
        assert split.waveforms.samples.dtype == np.int16
        assert isinstance(split.waveforms.samples, np.memmap)
        assert split.lengths.dtype == torch.int64
        assert split.lengths.tolist() == [round(scene.duration * 16_000) for scene in split.columns["scene"]]
        assert all(split.waveforms[row].any() for row in split.rows)


def test_audio_is_what_the_scene_renders_to(world):
    index = [3, 0, 11]
    audio, lengths = world.train.audio(index)
    for wave, length, number in zip(audio, lengths.tolist(), index, strict=True):
        rendered = module.render(world.train.columns["scene"][number], world.bank, CONFIG.scene)
        assert torch.allclose(wave[:length], rendered, atol=1 / 32767)


def test_singles_are_labelled_with_their_event(world):
    assert world.singles.labels.tolist() == [event for event in range(12) for _ in range(2)]
    with pytest.raises(ValueError, match="have no labels: take clips of a single event"):
        _ = world.train.labels


def test_relevance_is_that_of_the_scenes(world):
    matrix = world.test.relevance()
    assert matrix.shape == (30, 30)
    assert torch.equal(matrix.diagonal(), torch.ones(30))
    scenes = world.test.columns["scene"]
    expected = relevance_matrix([scenes[2]], [scenes[5]], world.bank.events)
    assert float(matrix[2, 5]) == pytest.approx(expected)
    assert world.test.relevance(world.valid).shape == (30, 30)


def test_the_same_configuration_gives_the_same_world_anywhere(world, home):
    """`home` is an empty cache: everything is rendered anew."""
    again = load_world(CONFIG)
    for old, new in zip(world.splits.values(), again.splits.values(), strict=True):
        assert old.columns["scene"] == new.columns["scene"]
        assert old.key == new.key
        assert np.array_equal(old.waveforms.samples, new.waveforms.samples)


def test_a_larger_training_split_begins_with_the_smaller(world):
    larger = load_world(WorldConfig(bank="synthetic", n_train=160, n_valid=30, n_test=30, n_single_per_event=2))
    assert larger.train.columns["scene"][:150] == world.train.columns["scene"]
    assert larger.test.key == world.test.key, "the other splits are not rendered again"


@pytest.mark.parametrize("change", [{"n_test": 9}, {"n_single_per_event": 1}])
def test_what_training_does_not_see_makes_no_other_world_for_runs(world, change):
    assert load_world(replace(CONFIG, **change)).identity == world.identity


@pytest.mark.parametrize("change", [{"captions_per_scene": 4}, {"n_train": 149}, {"n_valid": 29}])
def test_what_training_sees_makes_another(world, change):
    assert load_world(replace(CONFIG, **change)).identity != world.identity


def test_worlds_name_the_components_that_made_them(world):
    grammar = create("grammar")
    made = [
        world,
        WordingConfig(CONFIG).load(),
        LexiconConfig(CONFIG, "narrow").load(),
        HeldOutConfig(replace(CONFIG, n_test=4), takes="").load(),
        AugmentedConfig(CONFIG, (grammar,), merger=grammar, mixes=2).load(),
        MixtureConfig((Part(CONFIG, "sound"), Part(CONFIG, "music"))).load(),
        NLIConfig(CONFIG, CONFIG).load(),
    ]
    own = [set(), {"wording"}, {"lexicon"}, {"held_out"}, {"augmented", "mixing"}, {"mixture"}, {"nli"}]
    for each, further in zip(made, own, strict=True):
        assert set(each.parts) == {*world.parts, *(f"data/{name}" for name in further)}
        assert len(versions(*each.parts)) == len(each.parts)
    assert len({tuple(each.identity) for each in made if len(each.train) == len(world.train)}) == 5


def test_a_world_is_rendered_once(world, monkeypatch):
    monkeypatch.setattr(module, "_rendered", lambda *_: pytest.fail("rendered again"))  # not what the key is made of
    assert load_world(CONFIG).train.columns["scene"] == world.train.columns["scene"]


def test_impossible_worlds_are_refused():
    with pytest.raises(ValueError, match="n_train must be at least 1"):
        WorldConfig(n_train=0)
    with pytest.raises(UnknownNameError, match="synthetic"):
        load_world(WorldConfig(bank="synthetics"))


def test_scene_settings_may_come_as_a_mapping():
    assert WorldConfig(scene={"duration": 6.0, "snr_db": [0, 10]}).scene == module.SceneConfig(
        duration=6.0, snr_db=(0.0, 10.0)
    )

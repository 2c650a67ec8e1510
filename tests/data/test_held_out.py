"""Combinations, recordings and events that training has not met: each split holds out what it says."""

import numpy as np
import pytest
import soundfile
import torch

from pullpush.data.scenes import held_out
from pullpush.data.scenes.held_out import TESTS, HeldOutConfig, OwnHeldOutConfig, named_events, two_banks
from pullpush.data.scenes.renderer import render
from pullpush.data.scenes.world import WorldConfig
from pullpush.data.store import to_int16
from pullpush.errors import PullPushError
from pullpush.lab import session
from pullpush.studies.world import data, science

WORLD = WorldConfig("synthetic", n_train=120, n_valid=10, n_test=20, n_single_per_event=2)


@pytest.fixture(scope="module")
def world(module_home):
    return HeldOutConfig(WORLD, takes="").load()


def events(split) -> set[int]:
    return {event for scene in split.columns["scene"] for event in scene.events}


def combinations(split) -> set[frozenset[int]]:
    return {frozenset(scene.events) for scene in split.columns["scene"] if len(scene.events) > 1}


def test_training_never_names_the_events_of_the_split_events(world):
    named = events(world.train) | events(world.valid)
    assert events(world.split("events"))
    assert not events(world.split("events")) & named
    for split in ("test", "heard", "recordings"):
        assert events(world.split(split)) <= named


def test_no_combination_of_a_test_split_was_met_in_training(world):
    met = combinations(world.train) | combinations(world.valid)
    for split in TESTS:
        assert combinations(world.split(split))
        assert not combinations(world.split(split)) & met


def test_recordings_hold_the_graphs_of_heard_scene_by_scene_in_other_recordings(world):
    heard, recordings = (world.split(name) for name in ("heard", "recordings"))
    assert [s.graph for s in heard.columns["scene"]] == [s.graph for s in recordings.columns["scene"]]
    assert heard.key != recordings.key
    known, unknown = two_banks("synthetic", "")
    for bank, split in ((known, heard), (unknown, recordings)):
        audio, lengths = split.audio(3)
        rendered = to_int16(render(split.columns["scene"][3], bank, WORLD.scene).numpy())
        np.testing.assert_array_equal(to_int16(audio[0, : int(lengths)].numpy()), rendered)
    for kept, held in zip(known.clips, unknown.clips, strict=True):
        assert not any(len(a) == len(b) and bool((a == b).all()) for a in kept for b in held)


def test_clips_of_one_event_are_labelled_in_the_order_of_all_events(world):
    singles, further = world.singles, world.split("recording_singles")
    assert singles.labels.tolist() == [event for event in range(12) for _ in range(2)]
    assert events(world.split("recordings")) <= set(further.labels.tolist())
    assert len(singles.prompts()) == len(further.prompts()) == len(world.bank)


def test_a_share_of_each_category_is_never_named(module_home):
    heard, unheard = two_banks("synthetic", "")
    for share, expected in ((0.5, 7), (0.34, 10), (0.01, 12)):
        named = named_events(heard, unheard, share, seed=0)
        assert len(named) == expected, share
        assert {heard.events[row].category for row in named} == {event.category for event in heard.events}
    assert named_events(heard, unheard, 0.5, seed=0) != named_events(heard, unheard, 0.5, seed=1)


def test_events_with_further_recordings_are_named_first(module_home, monkeypatch):
    heard, unheard = two_banks("synthetic", "")
    some = held_out._part(unheard, "some", tuple(c if row in (0, 5) else () for row, c in enumerate(unheard.clips)))
    assert {0, 5} <= set(named_events(heard, some, 0.5, seed=3))


def test_a_share_outside_0_to_1_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        HeldOutConfig(share=1.5)


# ---------------------------------------------------------------- a bank of one's own

SMALL = {"n_train": 6, "n_valid": 3, "n_test": 3, "n_single_per_event": 1}


def own_bank(folder, **recordings: int) -> str:
    """Tones of one's own, so many of each kind; the name of the bank."""
    seconds = np.arange(16_000) / 16_000
    for kind, (name, count) in enumerate(recordings.items()):
        (folder / name).mkdir(parents=True)
        for take in range(count):
            tone = 0.3 * np.sin(2 * np.pi * (300 * (kind + 1) + 20 * take) * seconds)
            soundfile.write(folder / name / f"{take}.wav", tone, 16_000)
    return f"folder:{folder}"


def test_half_of_the_kinds_are_never_named_though_none_share_a_category(home, tmp_path):
    world = OwnHeldOutConfig(WorldConfig(own_bank(tmp_path, bell=2, drum=2, horn=2, saw=2), **SMALL)).load()
    named = events(world.train) | events(world.valid)
    assert len(named) == len(events(world.split("events"))) == 2
    assert not named & events(world.split("events"))
    assert events(world.split("recordings")) <= named


def test_what_a_bank_is_too_small_for_is_left_out(home, tmp_path):
    world = OwnHeldOutConfig(WorldConfig(own_bank(tmp_path / "one", bell=2), **SMALL)).load()
    assert {"recordings", "heard"} < set(world.splits)
    assert "events" not in world.splits
    world = OwnHeldOutConfig(WorldConfig(own_bank(tmp_path / "single", bell=1, saw=1), **SMALL)).load()
    assert set(world.splits) == {"train", "valid", "test", "events", "singles"}


def test_the_page_of_ears_tests_what_a_bank_of_ones_own_has(home, tmp_path):
    bank = own_bank(tmp_path / "classes", bell=1, drum=1, saw=1)
    profile = tmp_path / "mine.yaml"
    profile.write_text(f"like: smoke\nworld: {{bank: '{bank}', n_train: 24}}\n", encoding="utf-8")
    ground = data.Context(session.start("00-ears", profile=str(profile), out=tmp_path / "out"))
    assert list(ground.tests) == ["new combinations", "held-out events"]
    world = ground.view("sound").data
    table = data.contents(world).set_index("scenes of")
    assert table.loc["held-out recordings"].tolist() == [0, 0, 0]
    experiment = data.on_tests("a", data.systems_of(ground.book), {}, seeds=(0,), tests=ground.tests)
    assert {trial.where["test"] for trial in experiment.trials} == set(ground.tests)
    bridge = science.bridge(ground.book)
    assert {"singles", "recording_singles"} & {*world.splits} == {"singles"}
    assert set(science.bridge_on_tests(bridge, world)["test"]) == set(ground.tests)
    with pytest.raises(PullPushError, match="one recording of each"):
        science.without_words(world, science.encoders(ground.book))
    with pytest.raises(PullPushError, match="one event"):
        science.nearest(torch.eye(2), [0, 0])

"""A bank of one's own is held out in halves of all its events, as far as it is large enough."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from pullpush.data.scenes.held_out import OwnHeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.lab import session
from pullpush.studies.world import ears, listening, tagging

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


def events(split) -> set[int]:
    return {event for scene in split.columns["scene"] for event in scene.events}


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


@pytest.fixture
def ground(home, tmp_path):
    bank = own_bank(tmp_path / "classes", bell=1, drum=1, saw=1)
    profile = tmp_path / "mine.yaml"
    profile.write_text(f"like: smoke\nworld: {{bank: '{bank}', n_train: 24}}\n", encoding="utf-8")
    return ears.Ears(session.start("00-ears", profile=str(profile), out=tmp_path / "out"))


def test_the_page_of_ears_tests_what_a_bank_of_ones_own_has(ground):
    assert list(ground.tests) == ["new combinations", "held-out events"]
    world = ground.view("sound").data
    table = ears.contents(world).set_index("scenes of")
    assert table.loc["held-out recordings"].tolist() == [0, 0, 0]
    experiment = ears.on_tests("a", ears.systems_of(ground.book), {}, seeds=(0,), tests=ground.tests)
    assert {trial.where["test"] for trial in experiment.trials} == set(ground.tests)
    bridge = tagging.bridge(ground.book)
    assert tagging.zero_shot_by_classes(bridge, world)["clips"].tolist() == ["of the bank"]
    assert set(tagging.on_tests(bridge, world)["test"]) == set(ground.tests)
    with pytest.raises(listening.PullPushError, match="one recording of each"):
        listening.without_words(world, listening.ears(fetched=False))
    with pytest.raises(listening.PullPushError, match="one event"):
        listening.nearest(listening.torch.eye(2), [0, 0])

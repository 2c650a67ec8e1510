"""Trunks that travel with the book: found by what was declared, whole or refused."""

from dataclasses import replace

import pytest

from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.lab import trunks
from pullpush.lab.trunks import TrunkError
from pullpush.training import recipe
from pullpush.training.frozen import encoded
from pullpush.training.runs import Plan

SMALL = {"epochs": 1, "batch_size": 8, "dim": 8, "text": "hashed", "encoder_options": {"audio_channels": (4, 4, 8)}}


@pytest.fixture(scope="module")
def plan(module_home):
    scene = {"duration": 1.0, "min_duration": 0.8, "max_events": 1}
    config = WorldConfig("synthetic", n_train=16, n_valid=6, n_test=6, n_single_per_event=1, scene=scene)
    return Plan(load_world(config), recipe("infonce", **SMALL))


@pytest.fixture
def root(plan, tmp_path):
    trunks.make("tiny", plan, "A toy.", root=tmp_path)
    return tmp_path


def test_what_is_declared_so_is_read_and_trained_nowhere(plan, root, monkeypatch):
    monkeypatch.setattr(Plan, "train", lambda plan: pytest.fail("trained although the trunk travels with the book"))
    found = trunks.trained(plan, root=root)
    assert found == trunks.folder_of("tiny", root=root)
    heard = encoded(plan.world, found)
    assert heard.test.audio(0)[0].shape[0] == 1


def test_its_note_says_what_it_is_made_of_and_by(plan, root):
    note = trunks.made(root=root)["tiny"]
    assert note["about"] == "A toy."
    assert note["command"] == "pullpush trunk tiny"
    assert note["seeds"] == [0]
    assert note["processor"]
    assert {"losses/infonce", "audio/cnn", "training/loop"} <= note["versions"].keys()


def test_another_seed_is_another_trunk(plan, root):
    other = replace(plan, seed=1)
    assert trunks.trained(other, root=root).path == other.path


def test_a_trunk_that_was_made_again_takes_the_place_of_the_old(plan, root):
    trunks.make("tiny", replace(plan, seed=1), "Another toy.", root=root)
    assert [path.name for path in trunks.folder_of("", root=root).iterdir()] == ["tiny"]
    assert trunks.made(root=root)["tiny"]["about"] == "Another toy."


@pytest.mark.parametrize("file", ["best.safetensors", "recipe.json", "made.json"])
def test_a_damaged_trunk_is_refused_with_what_to_do(plan, root, file):
    path = trunks.folder_of("tiny", root=root) / file
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.raises(TrunkError, match=r"tiny is damaged .* by `pullpush trunk tiny`"):
        trunks.trained(plan, root=root)

"""What encoders know without words, on features whose neighbours are seen by eye; what scene graphs and words say."""

import numpy as np
import pytest
import torch

from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.encoders import AUDIO
from pullpush.lab import session
from pullpush.studies.world import science
from pullpush.training.trunk import Published

ANGLES = torch.tensor([0.0, 0.1, 2.0, 2.1, 4.2])
CIRCLE = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)


@pytest.fixture(scope="module")
def held_out(home):
    world = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=2)
    return HeldOutConfig(world, takes="").load()


def test_the_nearest_clip_is_that_of_the_smallest_angle_and_never_of_the_same_group():
    assert science.nearest(CIRCLE, [0, 1, 2, 3, 4])[:4].tolist() == [1, 0, 3, 2]
    assert science.nearest(CIRCLE, [0, 0, 2, 2, 4])[0] in (2, 3, 4)


def test_neighbours_are_the_same_whatever_all_clips_have_in_common():
    shifted = CIRCLE + torch.tensor([100.0, -50.0])
    assert torch.equal(science.nearest(shifted, range(5)), science.nearest(CIRCLE, range(5)))
    assert torch.equal(science.recognised(shifted, shifted), torch.arange(5))


def test_chance_is_what_many_random_choices_give():
    groups, kinds = [0, 0, 1, 2, 3], ["bird", "bird", "bird", "tool", "tool"]
    rng, number = np.random.default_rng(0), np.array(groups)
    drawn = [
        kinds[rng.choice(np.flatnonzero(number != number[row]))] == kinds[row] for row in range(5) for _ in range(4000)
    ]
    assert science.kind_by_chance(groups, kinds) == pytest.approx(np.mean(drawn), abs=0.015)


def test_one_clip_of_each_event_is_taken_with_its_name_and_category(held_out):
    clips, events, kinds, names = science.one_of_each(held_out)
    assert clips.labels.tolist() == events == sorted(set(held_out.singles.labels.tolist()))
    assert names[3] == held_out.bank.events[events[3]].name.replace("_", " ")
    assert kinds[3] == held_out.bank.events[events[3]].category


def test_an_ear_that_knows_the_events_recognises_new_recordings_and_a_deaf_one_does_not(held_out, monkeypatch):
    known = science.one_of_each(held_out)
    torch.manual_seed(0)

    def features(clips, encoders):
        numbers = torch.as_tensor(clips.labels)
        perfect = torch.nn.functional.one_hot(numbers, len(known.events)).float()
        return {"knows": perfect, "deaf": torch.randn(len(clips), 8)}

    monkeypatch.setattr(science, "features_of", features)
    table = science.without_words(held_out, {"knows": None, "deaf": None}).set_index(["question", "encoder"])
    assert table.loc[(science.EVENT, "knows"), "value"] == 1
    assert table.loc[(science.EVENT, "deaf"), "value"] < 0.5
    assert table.loc[(science.EVENT, "deaf"), "chance"] == pytest.approx(1 / len(known.events))


def test_encoders_are_held_side_by_side_and_described_by_their_cards(held_out, tmp_path):
    encoders = science.encoders(session.start("00-ears", profile="smoke", out=tmp_path))
    clips = science.one_of_each(held_out).clips
    features = science.features_of(clips, encoders)
    assert {label: len(found) for label, found in features.items()} == dict.fromkeys(encoders, len(clips))
    described = science.cards({"x": Published("sfx")})
    assert described.loc[0, "hears"] == "44.1 kHz"
    assert described.loc[0, "licence"] == AUDIO["sfx"].licence
    assert all(AUDIO[name].weights for name in science.PUBLISHED)

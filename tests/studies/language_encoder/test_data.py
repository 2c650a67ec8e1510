"""Worlds differ in what their names say, and in nothing else."""

import pytest
import torch

from pullpush.errors import UnknownNameError
from pullpush.lab import session
from pullpush.lab.compute import WIDE
from pullpush.lab.profiles import profile
from pullpush.studies.language_encoder.data import CROSSED, SMALL, WORLDS, Grounds


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Grounds(session.start("04-language-encoder-lab", "smoke", out=tmp_path_factory.mktemp("out")))


def test_worlds_of_one_size_hold_the_same_clips_in_other_words(ground):
    many, few = (ground.view(name).data for name in ("freesound", "narrow"))
    torch.testing.assert_close(many.train.audio([0])[0], few.train.audio([0])[0])
    assert many.train.captions("eng") != few.train.captions("eng")
    assert max(len(scene.events) for scene in many.train.columns["scene"]) == 2


def test_the_small_world_is_the_beginning_of_the_large_one(ground):
    large, small = (ground.view(name).data for name in ("freesound", "clotho"))
    assert len(small.train) == round(SMALL * len(large.train))
    assert small.train.captions("eng") == large.train.captions("eng")[: len(small.train)]
    assert small.test.captions("eng") == large.test.captions("eng")


def test_galleries_of_a_world_begin_with_its_own_clips(ground):
    plain, wide = ground.view("audiocaps").data.test, ground.view("audiocaps" + WIDE).tests
    assert plain.captions("eng") == wide[0].test.captions("eng") != wide[1].test.captions("eng")


def test_triples_come_beside_clips_that_stay_as_they_are(ground):
    plain, beside = (ground.view(name).data for name in ("freesound", "freesound/nli"))
    assert {"premise", "entailment", "contradiction"} <= {*beside.train.columns} - {*plain.train.columns}
    assert beside.train.captions("eng") == plain.train.captions("eng")
    assert beside.identity != plain.identity, "runs are named apart"


def test_a_text_encoder_that_was_trained_before_is_a_views_own_but_in_smoke(ground, monkeypatch):
    assert {ground.view(name).overrides["text"] for name in ("clotho", "clotho/pretrained")} == {"words"}
    monkeypatch.setattr("pullpush.studies.own_data.is_small", lambda settings: False)
    pretrained = ground.view("freesound/pretrained").overrides
    assert pretrained["text"] == "minilm"
    assert pretrained["epochs"] < ground.view("freesound").overrides["epochs"]


def test_other_recordings_share_no_clip_with_those_of_scenes(ground):
    others, scenes = ground.view("others").data, ground.view("freesound").data
    assert others.singles.key != scenes.singles.key
    assert others.singles.prompts() == scenes.singles.prompts()


@pytest.mark.parametrize("name", ["freesund", "freesound/nil", "others/nli"])
def test_unknown_views_are_named(ground, name):
    with pytest.raises(UnknownNameError, match="unknown view"):
        ground.view(name)


def test_without_a_network_scenes_stand_in_for_pictures_and_music(ground):
    assert not ground.has_stamps
    assert ground.config("pictures") == ground.config("music") == ground.config("freesound")


def test_the_cross_holds_the_named_worlds():
    assert {WORLDS[name] for name in WORLDS} <= {*CROSSED.values()}
    assert len({*CROSSED.values()}) == len(CROSSED) == 8


def test_the_session_is_that_of_the_published_encoder(ground):
    assert profile("smoke").audio != ground.book.settings.audio == "yamnet"

"""Soft labels are what teachers say, kept once; columns come with clips and are made when they are looked at."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pullpush.cache import content_key
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.golden import version
from pullpush.rewriting import create as rewriter
from pullpush.studies.distill.labels import Blind, ByText, Dealt, Shuffled, of_clips
from pullpush.studies.taught import (
    Classes,
    Directed,
    Later,
    Run,
    TaughtConfig,
    Truth,
    both_sides,
    checked,
    similarities,
    soft_labels,
    with_columns,
)
from pullpush.training.evaluate import embed
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan

SMALL = WorldConfig("synthetic", n_train=12, n_valid=4, n_test=4, n_single_per_event=1, captions_per_scene=3)


@pytest.fixture(scope="module")
def clips(home):
    return load_world(SMALL).train


def test_dealt_labels_keep_the_pair_and_each_rows_numbers(clips):
    teachers = (Truth(), Blind(dim=8, seed=3))
    theirs, ours = (similarities(soft_labels(each, clips)) for each in (teachers, (Dealt(teachers, 1),)))
    torch.testing.assert_close(ours.diagonal(), theirs.diagonal(), atol=2e-3, rtol=0)
    torch.testing.assert_close(*(each.sort(dim=1).values for each in (ours, theirs)), atol=2e-3, rtol=0)
    apart = (ours - theirs).abs() > 0.01
    assert apart.any(dim=1).all(), "no clip's other texts stay in their order"
    again = similarities(soft_labels((Dealt(teachers, 2),), clips))
    assert not torch.equal(ours, again)


def test_the_truth_teaches_the_relevance(clips):
    labels = soft_labels([Truth()], clips)
    assert labels.dtype == np.float16
    torch.testing.assert_close(similarities(labels), clips.relevance(), atol=1e-3, rtol=0)


def test_similarities_are_the_mean_over_teachers_of_other_widths(clips):
    both = soft_labels([Truth(), Blind(dim=5, seed=3)], clips)
    alone = [similarities(soft_labels([teacher], clips)) for teacher in (Truth(), Blind(dim=5, seed=3))]
    assert both.shape == (12, 2, 2, 12)
    torch.testing.assert_close(similarities(both), (alone[0] + alone[1]) / 2, atol=1e-3, rtol=0)


def test_a_model_is_asked_for_each_clip_and_for_the_mean_of_its_captions(clips):
    model = create("cnn", "hashed", dim=8, audio_channels=(4, 4, 8)).eval()
    sides = both_sides(model, clips, "eng")
    audio, text = embed(model, clips, caption="all")
    torch.testing.assert_close(sides[:, 0], audio)
    torch.testing.assert_close(sides[:, 1], text.mean(dim=1))
    expected = torch.einsum("id,jcd->ijc", audio, text).mean(dim=2)
    torch.testing.assert_close(sides[:, 0] @ sides[:, 1].T, expected)


def test_teachers_are_asked_once(clips, monkeypatch):
    first = soft_labels([Blind(dim=7, seed=11)], clips)

    monkeypatch.setattr(np, "save", lambda *_: pytest.fail("asked again"))
    assert np.array_equal(soft_labels([Blind(dim=7, seed=11)], clips), first)
    with pytest.raises(pytest.fail.Exception, match="asked again"):
        soft_labels([Blind(dim=7, seed=12)], clips)


def test_what_teachers_cannot_be(clips):
    with pytest.raises(DataNotFoundError, match="train it to its end first"):
        soft_labels([Run("never-trained")], clips)


def test_a_run_teaches_by_its_best_weights(clips):
    world = load_world(SMALL)
    options = {"text": "hashed", "dim": 8, "epochs": 1, "encoder_options": {"audio_channels": (4, 4, 8)}}
    plan = Plan(world, recipe("infonce", batch_size=6, **options))
    model = plan.train().model
    sides = both_sides(model, clips, "eng")
    torch.testing.assert_close(Run(plan.key).embed(clips, "eng"), sides)
    torch.testing.assert_close(Directed(plan.key).embed(clips, "eng"), torch.nn.functional.normalize(sides, dim=2))


# ---------------------------------------------------------------- columns


def test_columns_are_made_when_they_are_looked_at(clips):
    made = []
    later = Later(12, lambda: made.append(True) or list(range(12)))
    held = with_columns(clips, {"number": later})
    assert not made
    assert held.key == clips.key, "features are found again"
    assert held.columns["number"][3] == 3
    assert list(later) == list(range(12))
    assert len(made) == 1


def test_a_world_is_named_by_who_taught_it():
    names = set()
    for teachers, topics in (
        ((), None),
        ((Truth(),), None),
        ((Blind(seed=1),), None),
        ((Blind(seed=2),), None),
        ((Truth(),), Classes("event")),
    ):
        world = TaughtConfig(SMALL, teachers, topics).load()
        names.add(content_key(world.identity))
    assert len(names) == 5


@pytest.mark.parametrize("part", ["studies/soft_labels", "studies/topics", "text/hashed"])
def test_a_world_is_named_by_what_makes_its_columns(part, monkeypatch):
    """And not by what the columns hold: their teachers may not be trained yet."""
    config = TaughtConfig(SMALL, (Truth(),), ByText(text="hashed"))
    before = config.load().identity
    assert config.load().identity == before

    def changed(*names):
        return {name: "other" if name == part else version(name) for name in names}

    monkeypatch.setattr("pullpush.studies.taught.versions", changed)
    assert config.load().identity != before


def test_labels_are_asked_again_where_what_makes_them_has_changed(clips, monkeypatch):
    first = soft_labels([Truth()], clips)
    monkeypatch.setattr(Truth, "embed", lambda teacher, clips, language: torch.ones(len(clips), 2, 3))
    assert np.array_equal(soft_labels([Truth()], clips), first)  # the golden file says what a version is
    monkeypatch.setattr("pullpush.studies.taught.versions", lambda *names: {name: "other" for name in names})
    assert (soft_labels([Truth()], clips) == 1).all()


def test_augmented_clips_bring_what_teachers_say_of_them_and_no_topic_of_mixes(home):
    back = rewriter("grammar")
    config = AugmentedConfig(SMALL, (back,), merger=back, mixes=3)
    train = TaughtConfig(config, (Truth(),), Classes("event")).load().train
    assert len(train) == 15
    plain = Classes("event").of(load_world(SMALL).train, "eng")
    assert list(train.columns["clusters"]) == [*plain.tolist(), -1, -1, -1]
    labels = np.stack(list(train.columns["teachers"]))
    torch.testing.assert_close(similarities(labels), train.relevance(), atol=1e-3, rtol=0)


# ---------------------------------------------------------------- topics of clips


def test_a_clip_has_the_topic_of_most_of_its_captions():
    class Two(ByText):
        def topics(self, captions, language="eng"):
            return SimpleNamespace(labels=np.array([0, 1, 1, -1, -1, 0, -1, -1, -1]))

    class Held:
        def captions(self, language):
            return [["a"] * 3] * 3

    with pytest.raises(PullPushError, match="all clips have one topic"):
        checked(np.array([1, 1, -1]))
    assert Two().of(Held()).tolist() == [1, 0, -1]
    assert of_clips(np.array([3, 2, 3, 2, 0]), [4, 1]).tolist() == [2, 0], "the first of equal ones"


def test_nothing_but_outliers_is_refused():
    with pytest.raises(PullPushError, match="no clip has a topic, all are outliers"):
        checked(np.array([-1, -1]))


def test_shuffled_topics_have_the_same_sizes(clips):
    truth = Classes("event")
    dealt = Shuffled(truth, seed=1).of(clips, "eng")
    assert sorted(dealt) == sorted(truth.of(clips, "eng"))
    assert dealt.tolist() != truth.of(clips, "eng").tolist()


def test_classes_are_what_scenes_hold(clips):
    scenes = clips.columns["scene"]
    found = Classes("events").of(clips, "eng")
    for one in range(12):
        for other in range(12):
            same = set(scenes[one].events) == set(scenes[other].events)
            assert (found[one] == found[other]) == same
    counts = np.bincount(found)
    assert (np.diff(counts) <= 0).all(), "the most frequent first"

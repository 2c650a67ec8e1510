"""What a chapter trains on, on a tiny world."""

from __future__ import annotations

from dataclasses import replace

from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment
from pullpush.training.trunk import Published


def test_the_halves_of_a_bank_share_no_event(world):
    halves = [set(half.split(",")) for half in material.categories(world)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == {event.category for event in world.bank.events}
    sizes = [sum(event.category in half for event in world.bank.events) for half in halves]
    assert abs(sizes[0] - sizes[1]) <= 2


def test_a_profile_is_heard_through_its_published_encoder_where_a_chapter_asks(home, tmp_path):
    book = session.start("04-distill", profile="smoke", out=tmp_path)
    plain, published = material.of(book), material.of(book, published=True)
    assert (plain.book.settings.audio, published.book.settings.audio) == ("cnn", "yamnet")
    assert published.trunk() == Published("yamnet", {"pretrained": False})
    assert published.view("frozen").data.test.dim == 1024
    below = published.view("upper")
    one = Experiment.of("tiny", {"InfoNCE": ("infonce", {"epochs": 1})}, seeds=(0,), data="upper")
    (plan,) = compute.plans_of(published, one).values()
    assert (plan.world.trunk.level, plan.recipe.audio) == ("lower", "upper")
    assert plan.recipe.encoder_options == {"audio_of": "yamnet", "audio_options": {"pretrained": False}}
    assert sum(below.data.test.lengths) == len(below.data.test.values)
    assert "audio/upper" in compute.parts_of(published, one)
    (whole,) = compute.plans_of(published, replace(one, data="whole")).values()
    assert (whole.recipe.audio, whole.world.trunk) == ("yamnet", None)
    assert compute.content_of(plain, one) != compute.content_of(published, one)


def test_a_trunk_that_is_trained_here_has_no_upper_part_of_its_own(home, tmp_path):
    ground = material.of(session.start("02-svr", profile="smoke", out=tmp_path))
    assert ground.view("upper").data.trunk is None

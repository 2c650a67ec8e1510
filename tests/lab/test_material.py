"""What a chapter trains on, on a tiny world."""

from dataclasses import replace

import numpy as np
import pytest

from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment, Trial


def test_two_worlds_share_events_but_no_combination_that_is_tested_on(home, tmp_path):
    ground = material.of(session.start("02-svr", profile="smoke", out=tmp_path))
    a, b = material.two_worlds(ground.book, ground.data()).values()
    for trained, tested in ((a, b), (b, a)):
        known, asked = (
            {frozenset(scene.events) for scene in clips.columns["scene"]} for clips in (trained.train, tested.test)
        )
        assert not {events for events in known & asked if len(events) > 1}
    events = [{event for scene in each.train.columns["scene"] for event in scene.events} for each in (a, b)]
    assert events[0] & events[1]


@pytest.mark.parametrize(("trained", "tested"), [("frozen", "frozen"), ("frozen/half", "frozen"), ("A", "B")])
def test_galleries_begin_with_the_clips_of_before(trained, tested, home, tmp_path):
    book = session.start("02-svr", profile="smoke", out=tmp_path)
    assert material.of(book).galleries == book.settings.points == 2
    ground = material.of(replace(book, settings=replace(book.settings, points=None)))
    one = Experiment("one", (Trial("InfoNCE", "infonce", {"epochs": 1}, data=trained, test=tested),), (0,))
    more = one.once_more("more", (0,), material.WIDE)
    before, after = (compute.run(ground, each).values("InfoNCE", "R@1")[0] for each in (one, more))
    assert len(after) == compute.GALLERIES * len(before)
    np.testing.assert_array_equal(after[: len(before)], before)
    scenes = [world.test.columns["scene"] for world in ground.view(tested + material.WIDE).tests]
    assert len({str(scene) for each in scenes for scene in each}) > len(before)

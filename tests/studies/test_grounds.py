"""What the grounds of all chapters say of how their data are made: components that there are, without making any."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pullpush import golden
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.lab import material, session
from pullpush.studies.consistency.data import Grounds as Consistency
from pullpush.studies.distill.data import Context as Distill, LessonContext
from pullpush.studies.glap import data as glap
from pullpush.studies.language_encoder.data import Grounds as LanguageEncoder
from pullpush.studies.svr.data import Protocols
from pullpush.studies.together.data import Context as Together
from pullpush.studies.world.data import Context as Ears

GROUNDS: Mapping[str, Callable[[session.Session], Any]] = {
    "scenes": material.of,
    "dataset": lambda book: material.of(book, "clotho"),
    "consistency": lambda book: Consistency(material.of(book)),
    "protocols": Protocols,
    "language encoder": LanguageEncoder,
    "glap": glap.Grounds,
    "distill": Distill,
    "lesson": LessonContext,
    "together": Together,
    "ears": Ears,
}


@pytest.mark.parametrize("profile", ["smoke", "quick"])
@pytest.mark.parametrize("name", GROUNDS)
def test_parts_are_components_and_nothing_is_made_to_name_them(name, profile, own_home, tmp_path):
    parts = GROUNDS[name](session.start("02-svr", profile=profile, out=tmp_path)).parts
    assert set(parts) <= set(golden.names())
    assert "data/decoding" in parts
    assert not own_home.exists()


def test_scenes_name_what_their_world_names(home, tmp_path):
    world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    ground = material.of(session.start("02-svr", profile="smoke", out=tmp_path))
    assert set(world.parts) <= set(ground.parts)


def test_tests_of_the_same_clips_are_told_apart_by_how_they_are_told(home, tmp_path):
    ground = glap.Grounds(session.start("05-glap", profile="smoke", out=tmp_path))
    names = ("sound", "sound deu", "sound recordings")
    tests = {name: ground.test(name) for name in names}
    assert tests["sound"].test.key == tests["sound deu"].test.key
    assert len({world.words for world in tests.values()}) == len(names)
    labels = tests["sound"].split("singles")
    other = glap.tested([], tests["sound"].test, "", singles=labels.select([0, 1]))
    assert other.words != glap.tested([], tests["sound"].test, "", singles=labels).words

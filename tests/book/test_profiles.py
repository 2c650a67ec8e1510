"""Profiles are data that the library can act on."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pullpush.book.profiles import DEFAULT, PROFILES, profile
from pullpush.data.world import WorldConfig
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import UnknownNameError


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_names_what_there_is(name):
    row = profile(name)
    assert row.name == name
    assert WorldConfig(**row.world).n_test >= 1
    assert row.audio in AUDIO
    assert row.text in TEXT
    assert min(row.dim, row.epochs, row.batch_size, row.seeds) >= 1
    assert "\n" not in row.about


def test_the_default_is_quick_and_has_the_batch_of_the_paper():
    assert profile().name == DEFAULT == "quick"
    assert profile().batch_size == 24
    assert profile().seeds >= 3, "bands need seeds"


def test_smoke_needs_nothing_from_a_network():
    row = profile("smoke")
    assert row.world["bank"] == "synthetic"
    assert row.text == "hashed"


def test_a_profile_cannot_be_changed_by_a_chapter():
    with pytest.raises(FrozenInstanceError):
        profile("smoke").epochs = 9
    with pytest.raises(TypeError):
        profile("smoke").world["n_train"] = 9
    with pytest.raises(TypeError):
        PROFILES["mine"] = profile("smoke")


def test_an_unknown_profile_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'full'"):
        profile("ful")

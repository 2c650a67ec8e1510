"""What chapters do alike."""

from dataclasses import replace

import pytest
import torch

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.errors import UnknownNameError
from pullpush.lab import common
from pullpush.lab.profiles import profile
from pullpush.lab.session import Session

SIZE = {"bank": "synthetic", "n_train": 16, "n_valid": 8, "n_test": 8}


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Session:
    tiny = replace(profile("smoke"), world=SIZE, epochs=1, batch_size=8, dim=8)
    return Session("c", tiny, 0, tmp_path_factory.mktemp("out"))


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.state_dict().values()])


def test_the_world_is_that_of_the_profile_and_the_same_for_every_seed(book, world):
    assert common.world(book).config == world.config
    assert common.world(replace(book, seed=7)).config == world.config
    assert len(common.world(book, n_test=9).test) == 9


def test_a_recipe_takes_the_size_of_the_profile_unless_told_otherwise(book):
    sized = common.sized(book, "infonce", epochs=3)
    assert (sized.audio, sized.text, sized.dim, sized.batch_size, sized.epochs) == ("cnn", "hashed", 8, 8, 3)
    with pytest.raises(UnknownNameError, match="did you mean 'infonce'"):
        common.sized(book, "infonc")


def test_a_run_is_trained_once_and_read_ever_after(book, world):
    first = common.train(book, world, "infonce")
    again = common.train(book, world, "infonce", seed=0)
    other = common.train(book, world, "infonce", seed=1)
    assert torch.equal(weights(first.model), weights(again.model))
    assert not torch.equal(weights(first.model), weights(other.model))
    assert first.steps.equals(again.steps)
    assert first.path == again.path != other.path


def test_an_untrained_model_is_where_the_run_began(book):
    one, same, other = (common.untrained(replace(book, seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(weights(one), weights(same))
    assert not torch.equal(weights(one), weights(other))
    assert not one.training


def test_zero_shot_is_asked_in_every_language(book, world):
    table = common.zero_shot_by_language(common.untrained(book), world)
    assert tuple(table["language"]) == LANGUAGES
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert (table["chance"] == 1 / len(world.bank.events)).all()

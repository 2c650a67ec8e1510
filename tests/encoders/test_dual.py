"""The dual encoder: unit embeddings, checks at the door, creation by name and seed."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from published import noise

from pullpush.encoders import TEXT, AudioEncoder, DualEncoder, create
from pullpush.encoders.dual import Projection, normalise
from pullpush.errors import AudioError, UnknownNameError

TINY = {"dim": 8, "audio_channels": (4, 4, 8, 8), "text_features": 32}


@pytest.fixture(scope="module")
def model():
    return create("cnn", "hashed", **TINY).eval()


@pytest.mark.parametrize(
    ("audio", "lengths", "message"),
    [
        (noise(5000), None, r"\(clips, samples\).*\(5000,\)"),
        (torch.zeros(0, 5), None, "at least one"),
        (torch.zeros(2, 0), None, "at least one"),
        ([[0.0]], None, "list"),
        (torch.zeros(2, 5, dtype=torch.int16), None, "int16.*32768"),
        (torch.zeros(2, 5), torch.tensor([5]), r"lengths must be \(2,\)"),
        (torch.zeros(2, 5), torch.tensor([5.0, 4.0]), "whole numbers"),
        (torch.zeros(2, 5), torch.tensor([5, 0]), "1 … 5"),
        (torch.zeros(2, 5), torch.tensor([5, 6]), "1 … 5"),
        (torch.zeros(2, 5), [5, 5], "lengths must be a tensor of 2 whole numbers, got list"),
        (torch.tensor([[1.0], [1e30]]), None, r"samples up to 1e\+30, where 1 is full scale, in clips \[1\]"),
        (32768 * noise(2, 5), None, "divide int16 by 32768"),
        (torch.tensor([[0.0], [torch.nan]]), None, r"NaN.*clips \[1\]"),
        (torch.tensor([[torch.inf], [0.0]]), None, r"infinite.*clips \[0\]"),
    ],
)
def test_audio_that_cannot_be_encoded_is_explained(model, audio, lengths, message):
    with pytest.raises(AudioError, match=message):
        model.encode_audio(audio, lengths)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [("a frog", TypeError, "wrap it"), ([], ValueError, "at least one"), (["a", 3], TypeError, "int at place 1")],
)
def test_texts_that_cannot_be_encoded_are_explained(model, texts, error, message):
    with pytest.raises(error, match=message):
        model.encode_text(texts)
    with pytest.raises(error, match=message):
        model.precompute_text(texts)


def test_texts_of_another_number_of_languages_are_refused(model):
    with pytest.raises(ValueError, match=r"one code for each of 1 texts, got \['eng', 'fra'\]"):
        model.encode_text(["dog"], ["eng", "fra"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("cnnn", "use"), {}, "audio encoder 'cnnn': did you mean 'cnn'"),
        (("cnn", "hash"), {}, "text encoder 'hash': did you mean 'hashed'"),
        (("cnn", "hashed"), {"audio_chanels": (4,)}, "'audio_chanels': did you mean 'audio_channels'"),
        (("cnn", "hashed"), {"text_frozen": True}, "option 'text_frozen'"),
    ],
)
def test_unknown_names_suggest_known_ones(arguments, options, message):
    with pytest.raises(UnknownNameError, match=message):
        create(*arguments, **options)


def test_any_pair_of_modules_makes_a_model():
    class Mean(AudioEncoder):
        dim = 1

        def forward(self, audio, lengths=None):
            return audio.sum(1, keepdim=True) / lengths[:, None]

    model = DualEncoder(Mean(), TEXT["hashed"].make(features=8), dim=4)
    assert model.encode_audio(torch.ones(2, 6)).shape == model.encode_text(["a", "b"]).shape == (2, 4)


# Its projections: unit length, and nothing explodes at zero


def test_projection_is_linear_relu_linear_normalise():
    torch.manual_seed(0)
    projection = Projection(6, 4, 5).double()
    x = torch.randn(3, 6, dtype=torch.float64)
    first, _, second = projection.layers
    expected = (x @ first.weight.T + first.bias).clamp(min=0) @ second.weight.T + second.bias
    torch.testing.assert_close(projection(x), expected / expected.norm(dim=1, keepdim=True))


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(1, 8))
def test_normalising_ignores_scale(scale, size):
    x = torch.arange(1.0, size + 1)[None]
    torch.testing.assert_close(normalise(scale * x), x / x.norm())


def test_zero_stays_zero_with_finite_gradient():
    x = torch.zeros(2, 3, requires_grad=True)
    y = normalise(x)
    y.sum().backward()
    assert torch.equal(y, torch.zeros(2, 3))
    assert torch.isfinite(x.grad).all()

"""The dual encoder: unit embeddings, checks at the door, creation by name and seed."""

import copy

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


@settings(max_examples=15, deadline=None)
@given(length=st.integers(1, 6000), padding=st.integers(0, 9000))
def test_padding_does_not_change_embedding(model, length, padding):
    audio = noise(1, length + padding)
    alone = model.encode_audio(audio[:, :length])
    torch.testing.assert_close(model.encode_audio(audio, torch.tensor([length])), alone, atol=1e-5, rtol=1e-4)


def test_gradient_reaches_every_parameter():
    model = create("cnn", "hashed", **TINY)
    (model.encode_audio(noise(3, 5000)) * model.encode_text(["a", "b", "c"])).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


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
        (torch.tensor([[0.0], [torch.nan]]), None, r"NaN.*clips \[1\]"),
        (torch.tensor([[torch.inf], [0.0]]), None, r"infinite.*clips \[0\]"),
    ],
)
def test_audio_that_cannot_be_encoded_is_explained(model, audio, lengths, message):
    with pytest.raises(AudioError, match=message):
        model.encode_audio(audio, lengths)


def test_nan_beyond_the_length_is_padding(model):
    audio = noise(1, 900)
    audio[0, 500:] = torch.nan
    assert torch.isfinite(model.encode_audio(audio, torch.tensor([500]))).all()


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [("a frog", TypeError, "wrap it"), ([], ValueError, "at least one"), (["a", 3], TypeError, "int at place 1")],
)
def test_texts_that_cannot_be_encoded_are_explained(model, texts, error, message):
    with pytest.raises(error, match=message):
        model.encode_text(texts)
    with pytest.raises(error, match=message):
        model.precompute_text(texts)


def test_state_holds_what_is_trained_and_makes_a_copy(model):
    state = model.state_dict()
    trained = {name for name, _ in model.named_parameters()}
    running = {name for name in state if name.split(".")[-1].startswith(("running_", "num_batches"))}
    assert set(state) == trained | running
    assert all(tensor.is_contiguous() for tensor in state.values())  # safetensors asks for it
    other = create("cnn", "hashed", seed=9, **TINY).eval()
    other.load_state_dict(state)
    audio = noise(2, 4000)
    torch.testing.assert_close(other.encode_audio(audio), model.encode_audio(audio))
    torch.testing.assert_close(copy.deepcopy(model).encode_text(["a"]), model.encode_text(["a"]))


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


def test_precomputing_warms_frozen_encoders_and_leaves_trained_ones(model):
    model.precompute_text(["never seen before"])
    assert "never seen before" in model.text.store._memory
    create("cnn", "transformer", dim=8).precompute_text(["a"])


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


def test_hidden_size_defaults_to_outputs():
    assert Projection(6, 4).layers[0].out_features == 4


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_comes_out_as_unit_float32(dtype):
    y = normalise(torch.full((1, 1000), 60.0, dtype=dtype))
    assert y.dtype == torch.float32
    torch.testing.assert_close(y.norm(), torch.tensor(1.0))


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="outputs=0"):
        Projection(3, 0)

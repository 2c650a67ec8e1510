"""Chunks of texts with cached gradients train as the whole batch does."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal
from standin import TinyClips, TinyModel
from torch import nn

from pullpush.data.batches import PairDataset, collate
from pullpush.encoders import create
from pullpush.errors import TrainingError
from pullpush.losses import kcl
from pullpush.training import Diagnostics, recipe, train
from pullpush.training.chunked import chunk_size, embed_unique, in_chunks
from pullpush.training.objective import Objective

LANGUAGES = ("eng", "fra", "deu", "jpn")


def batch(clips=6, languages=LANGUAGES, sampling="all"):
    dataset = PairDataset(TinyClips(clips), languages=languages, sampling=sampling)
    return collate([dataset[row] for row in range(clips)])


def bytes_model(**options):
    return create("cnn", "transformer", dim=8, audio_channels=(4, 4), text_width=16, text_layers=1, **options)


def gradients(module):
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def assert_same(ours, expected, tolerance=1e-4):
    """Loss and gradients agree, each gradient relative to its largest element."""
    torch.testing.assert_close(ours[0], expected[0], rtol=tolerance, atol=tolerance)
    assert ours[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        torch.testing.assert_close(
            ours[1][name] / (scale := gradient.abs().max() + 1e-12), gradient / scale, rtol=0, atol=tolerance, msg=name
        )


class Double(nn.Module):
    """Texts in float64: bytes embedded, mixed and normalised."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.seen = []  # the texts and languages of each call
        torch.manual_seed(0)
        self.embed = nn.Embedding(256, 8)
        self.mix = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 5))
        self.double()

    def encode_text(self, texts, languages=None):
        self.seen.append((list(texts), languages))
        mean = torch.stack([self.embed(torch.tensor(list(text.encode()))).mean(0) for text in texts])
        return nn.functional.normalize(self.mix(mean), dim=1)


@settings(max_examples=20, deadline=None)  # the first call pays for what torch loads late
@given(languages=st.integers(1, 4), chunk=st.integers(1, 30), clips=st.integers(1, 7))
def test_kcl_in_float64_has_the_same_value_and_gradient(languages, chunk, clips):
    one = batch(clips, LANGUAGES[:languages])
    generator = torch.Generator().manual_seed(clips)
    audio = nn.functional.normalize(torch.randn(clips, 5, generator=generator, dtype=torch.float64), dim=1)
    results = []
    for embed in (
        lambda model: [model.encode_text(texts) for texts in (one.texts, *one.parallel)],
        lambda model: embed_unique(model, one, chunk),
    ):
        model = Double()
        loss = kcl(audio, torch.stack(list(embed(model)), dim=1))
        loss.backward()
        results.append((loss.detach(), gradients(model)))
    assert_same(*results, tolerance=1e-10)


@pytest.mark.parametrize("text", ["transformer", "words"])
def test_packed_languages_have_the_gradients_of_each_by_itself(text):
    results = []
    for chunk in (0, -1):
        model = create("cnn", text, dim=8, audio_channels=(4, 4), text_dropout=0.0)
        one = recipe("kcl", languages=LANGUAGES, text=text, text_chunk=chunk, batch_size=6)
        loss = Objective(model, one)(batch()).loss
        loss.backward()
        results.append((loss.detach(), gradients(model)))
    assert_same(*results, tolerance=1e-4)


def test_packed_texts_are_padded_little_and_in_few_calls():
    model, one = Double(), batch(clips=14)
    embed_unique(model, one, 6, cached=False)
    calls = [[len(text.encode()) for text in texts] for texts, _ in model.seen]
    room = max(len(sizes) * max(sizes) for sizes in calls)
    assert room <= 6 * max(map(max, calls))
    assert len(calls) <= 6 * 4 / 6
    assert sum(len(sizes) * max(sizes) for sizes in calls) < 1.15 * sum(map(sum, calls))


@pytest.mark.parametrize("languages", [2, 3, 4])
def test_several_steps_of_training_are_the_same(languages):
    results = []
    for chunk in (0, 3):
        options = {"languages": LANGUAGES[:languages], "dim": 8, "batch_size": 8, "epochs": 2, "clip": 0.5}
        one = recipe("kcl+bi-dynamic-svr", **options, text_chunk=chunk)
        dataset = PairDataset(TinyClips(20), languages=one.languages, sampling="all")
        watch = Diagnostics(every=2)
        results.append(train(TinyModel(dropout=0), one, dataset, TinyClips(12, seed=1), diagnostics=watch))
    plain, ours = results
    assert len(ours.steps) == 6
    assert_frame_equal(ours.steps, plain.steps, rtol=1e-3, atol=1e-5)
    for name, value in plain.model.state_dict().items():
        torch.testing.assert_close(ours.model.state_dict()[name], value, rtol=1e-3, atol=1e-5)


def test_second_pass_meets_the_dropout_of_the_first():
    """With each chunk's graph kept there is only one pass: an independent way to the same numbers."""
    texts, weight = [f"text {number}" for number in range(7)], torch.randn(7, 5, dtype=torch.float64)
    cached, kept = Double(dropout=0.5), Double(dropout=0.5)
    torch.manual_seed(3)
    ours = in_chunks(cached.encode_text, texts, ["eng"] * 7, 2)
    after = torch.get_rng_state()
    torch.rand(11)  # what comes between the passes does not matter
    (weight * ours).sum().backward()
    expected_next = torch.rand(3)
    torch.manual_seed(3)
    expected = torch.cat([kept.encode_text(part) for part in (texts[:1], texts[1:3], texts[3:5], texts[5:])])
    assert torch.equal(torch.get_rng_state(), after)
    (weight * expected).sum().backward()
    torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    assert_same((ours.detach(), gradients(cached)), (expected.detach(), gradients(kept)), 1e-12)
    torch.rand(11)
    assert torch.equal(torch.rand(3), expected_next), "the backward pass leaves the random state as it was"


def test_each_caption_is_encoded_once_and_in_its_language():
    model, one = Double(), batch(clips=14)  # six sounds: captions repeat
    embed_unique(model, one, 5)
    seen = [list(zip(*told, strict=True)) for told in model.seen]
    flat = [pair for part in seen for pair in part]
    columns = zip((one.texts, *one.parallel), (one.languages, *one.parallel_languages), strict=True)
    assert len(flat) == len(set(flat)) == 6 * 4
    assert set(flat) == {pair for column in columns for pair in zip(*column, strict=True)}
    assert max(map(len, seen)) == 5


def test_activations_of_one_chunk_are_all_that_autograd_keeps():
    def kept(encode):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: (sizes.append(x.numel()), x)[1], lambda x: x):
            encode()
        return sum(sizes)

    model, texts, languages = bytes_model(), [f"a longer text {number}" for number in range(32)], ["eng"] * 32
    one = kept(lambda: model.encode_text(texts[-4:], languages[-4:]))
    parameters = sum(p.numel() for p in model.parameters())
    chunks, whole = (
        kept(lambda chunk=chunk: in_chunks(model.encode_text, texts, languages, chunk)) for chunk in (4, None)
    )
    assert chunks <= parameters + one < whole


def test_last_chunk_is_full_and_encoded_once():
    model = Double()
    table = in_chunks(model.encode_text, list("abcdefg"), ["eng"] * 7, 3)
    assert [texts for texts, _ in model.seen] == [["a"], ["b", "c", "d"], ["e", "f", "g"]]
    table.sum().backward()
    assert [texts for texts, _ in model.seen[3:]] == [["b", "c", "d"], ["a"]]


def test_bfloat16_is_that_of_the_step_in_both_passes():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain, ours = (Objective(model := bytes_model(), recipe("kcl", dim=8, text_chunk=c)) for c in (0, 5))
        losses = [objective(batch()).loss for objective in (plain, ours)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(*losses, rtol=2e-2, atol=1e-2)
    a, b = (torch.cat([g.flatten() for g in gradients(objective).values()]) for objective in (plain, ours))
    assert torch.nn.functional.cosine_similarity(a, b, dim=0) > 0.98
    assert model.dim == 8


class Rows(nn.Module):
    """Clips through two layers, as an audio encoder is called."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))

    def encode_audio(self, audio, lengths=None):
        return self.layers(audio)


def test_many_chunks_add_their_gradients_in_float32():
    clips, sides = torch.randn(512, 16, generator=torch.Generator().manual_seed(1)), {}
    weight = torch.randn(512, 8, generator=torch.Generator().manual_seed(2))
    for chunk, autocast in ((None, False), (2, True)):
        model = Rows()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            table = in_chunks(model.encode_audio, clips, torch.full((512,), 16), chunk)
        (table.float() * weight).sum().backward()
        sides[chunk] = torch.cat([gradient.flatten() for gradient in gradients(model).values()])
    assert (sides[2] - sides[None]).norm() < 0.01 * sides[None].norm()


def test_batch_normalisation_of_texts_is_refused():
    class Model(Double):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(5).double()

        def encode_text(self, texts, languages=None):
            return self.norm(super().encode_text(texts))

    with pytest.raises(TrainingError, match="text_chunk=0"):
        in_chunks(Model().encode_text, ["a", "b", "c", "d"], ["eng"] * 4, 2)
    with torch.no_grad():
        in_chunks(Model().eval().encode_text, ["a", "b", "c", "d"], ["eng"] * 4, 2)
    with pytest.raises(TypeError, match=r"a method of a model, such as model\.encode_text"):
        in_chunks(lambda texts, languages: torch.eye(len(texts)), ["a", "b"], ["eng"] * 2, 1)


def test_chunks_are_the_default_where_many_languages_meet_a_trained_encoder():
    trained, frozen = bytes_model(), create("cnn", "hashed", dim=8, audio_channels=(4, 4))
    assert Objective(trained, recipe("kcl", batch_size=6)).chunk == 6
    assert Objective(trained, recipe("kcl", batch_size=6, text_chunk=0)).chunk is None
    assert Objective(trained, recipe("kcl", text_chunk=10)).chunk == 10
    assert Objective(frozen, recipe("kcl")).chunk is None
    assert Objective(frozen, recipe("kcl", text_chunk=10)).chunk == 10
    assert Objective(trained, recipe("ml-clap")).chunk is None
    assert Objective(trained, recipe("cacl")).chunk is None
    assert chunk_size(Double(), None, sampling="all", clips=3) == 3


class Waves(nn.Module):
    """Clips in float64: frames mixed, dropped out, averaged over each clip's own frames and normalised."""

    def __init__(self, dropout=0.0, norm=False):
        super().__init__()
        torch.manual_seed(0)
        self.mix = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 5))
        self.norm = nn.BatchNorm1d(5) if norm else nn.Identity()
        self.double()

    def encode_audio(self, audio, lengths):
        frames = self.mix(audio.double().unflatten(1, (-1, 10)))
        own = torch.arange(frames.shape[1]) * 10 < lengths[:, None]
        mean = (frames * own[..., None]).sum(1) / own.sum(1, keepdim=True)
        return nn.functional.normalize(self.norm(mean), dim=1)


def clips(count):
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, 60, generator=generator), torch.randint(1, 61, (count,), generator=generator)


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 9), chunk=st.integers(1, 12))
def test_clips_in_chunks_have_the_same_value_and_gradient(count, chunk):
    audio, lengths = clips(count)
    texts = nn.functional.normalize(torch.randn(count, 1, 5, dtype=torch.float64), dim=2)
    results = []
    for size in (0, chunk):
        model = Waves()
        loss = kcl(in_chunks(model.encode_audio, audio, lengths, size), texts)
        loss.backward()
        results.append((loss.detach(), gradients(model)))
    assert_same(*results, tolerance=1e-10)

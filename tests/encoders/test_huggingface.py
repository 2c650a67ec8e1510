"""Encoders of the hub by their real classes, tiny and random: texts, weights of folders, commits, being offline.

What those of audio share is in test_published_audio.py.
"""

import copy
import re

import pytest
import torch
import transformers

from pullpush import encoders
from pullpush.encoders import create, create_audio
from pullpush.encoders.clap import clap_inputs
from pullpush.encoders.pretrained import tiny_tokenizer
from pullpush.errors import DataNotFoundError, UnknownNameError

AUDIO = {name: lambda name=name: encoders.AUDIO[name].small["model"] for name in ("clap", "whisper", "wavlm")}
TEXT = {name: lambda name=name: encoders.TEXT[name].small["model"] for name in ("roberta", "sonar")}


def text_model(name, **options):
    towers = {f"text_{option}": value for option, value in encoders.TEXT[name].small.items()}
    return create("cnn", name, dim=8, **towers, **options)


def test_a_tone_of_12_khz_reaches_clap():
    encoder = create("clap", "hashed", dim=8, audio_model=AUDIO["clap"]()).eval().audio
    time = torch.arange(48_000) / 48_000
    high = 0.1 * torch.sin(2 * torch.pi * 12_000 * time)[None]
    mel = clap_inputs(encoder.extractor, high, torch.tensor([48_000])).input_features[0, 0]  # (frames, bands)
    loudest = int(mel.mean(dim=0).argmax())
    hertz = encoder.extractor.mel_filters_slaney[:, loudest].argmax() * 48_000 / encoder.extractor.fft_window_size
    assert abs(hertz - 12_000) < 800
    assert encoder.sample_rate == 48_000
    assert (encoder(high) - encoder(torch.zeros(1, 48_000))).norm() > 1e-4


def test_models_on_the_hub_are_pinned_to_a_commit():
    cards = [card for card in [*encoders.AUDIO.values(), *encoders.TEXT.values()] if card.weights.startswith("hub ")]
    assert {card.name for card in cards if not re.search("@[0-9a-f]{40}$", card.weights)} == {
        "sonar",  # of which no published code names a commit
        "eat",  # whose publisher's code runs at the commit that the reader names
    }


@pytest.mark.parametrize("name", TEXT)
def test_padding_does_not_change_text(name):
    model = text_model(name).eval()
    texts = ["a frog croaks then a frog croaks", "frog", ""]
    together = model.encode_text(texts)
    for row, text in enumerate(texts):
        torch.testing.assert_close(together[row], model.encode_text([text])[0], atol=1e-5, rtol=1e-4)


def test_sonar_marks_the_language_of_each_text():
    model = text_model("sonar").eval()
    french, english, default = model.encode_text(["frog"] * 3, ["fra", "eng", "eng"])
    torch.testing.assert_close(english, default)
    assert (french - english).norm() > 1e-3
    torch.testing.assert_close(model.encode_text(["frog"])[0], english, atol=1e-6, rtol=1e-5)
    with pytest.raises(UnknownNameError, match="'fre': did you mean 'fra'"):
        model.encode_text(["frog"], ["fre"])
    with pytest.raises(ValueError, match="one code for each of 1 texts"):
        model.encode_text(["frog"], ["fra", "eng"])


def test_a_text_is_read_once_in_each_language(monkeypatch):
    monkeypatch.setattr("pullpush.encoders.pretrained_text.KNOWN", 3)
    model, read = text_model("sonar").eval(), []
    kind = type(model.text.tokenizer)
    call = kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda self, text, **how: (read.append(text), call(self, text, **how))[1])
    texts, languages = ["frog", "a frog", "frog"], ["fra", "eng", "eng"]
    first, again = (model.encode_text(texts, languages) for _ in range(2))
    assert read == texts
    torch.testing.assert_close(again, first, atol=0, rtol=0)
    model.encode_text(["dog"])  # more than are held
    torch.testing.assert_close(model.encode_text(texts, languages), first, atol=0, rtol=0)


@pytest.mark.parametrize("name", TEXT)
def test_frozen_weights_stay_outside_training_and_checkpoints(name):
    model = text_model(name, text_frozen=True).train()
    network = model.text.network.model
    assert not network.training
    assert not list(model.text.parameters())
    assert not [key for key in model.state_dict() if key.startswith("text.")]
    copy.deepcopy(model)
    model.encode_text(["a frog", "frog"])[:, 0].sum().backward()
    assert all(p.grad is None for p in network.parameters())
    assert next(model.to(torch.float64).text.network.model.parameters()).dtype == torch.float64  # it follows the model


def test_weights_come_from_a_folder(tmp_path):
    with torch.random.fork_rng():
        transformers.RobertaModel(TEXT["roberta"]()).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    one, other = (create("cnn", "roberta", dim=8, text_model=str(tmp_path), text_frozen=True).eval() for _ in "ab")
    torch.testing.assert_close(one.encode_text(["a frog"]), other.encode_text(["a frog"]))


@pytest.mark.parametrize(
    ("audio", "text"),
    [("clap", "hashed"), ("whisper", "hashed"), ("wavlm", "hashed"), ("cnn", "roberta"), ("cnn", "sonar")],
)
def test_model_that_is_not_there_says_what_to_do(audio, text, tmp_path):
    option = "audio_model" if text == "hashed" else "text_model"
    empty = tmp_path / "model"
    empty.mkdir()
    with pytest.raises(DataNotFoundError, match=r"cannot load.*Connect to the network once"):
        create(audio, text, **{option: str(empty)})


@pytest.mark.parametrize("name", ["clap", "whisper", "wavlm"])
def test_an_architecture_without_its_weights_is_random_but_the_same_for_a_seed(name, tmp_path):
    one = create_audio(name, model=AUDIO[name](), seed=9)
    whole = transformers.WhisperModel(AUDIO[name]()) if name == "whisper" else one.network.model
    whole.save_pretrained(tmp_path)
    one.extractor.save_pretrained(tmp_path) if hasattr(one, "extractor") else (
        transformers.Wav2Vec2FeatureExtractor().save_pretrained(tmp_path)
    )
    kept = [create_audio(name, model=str(tmp_path), seed=seed) for seed in (0, 1)]
    drawn = [create_audio(name, model=str(tmp_path), seed=seed, pretrained=False) for seed in (0, 0, 1)]
    largest = lambda model: max((p.detach() for p in model.parameters() if p.ndim > 1), key=torch.numel)  # noqa: E731
    kept, drawn = ([largest(model) for model in models] for models in (kept, drawn))
    assert torch.equal(kept[0], kept[1])
    assert torch.equal(drawn[0], drawn[1])
    assert drawn[0].shape == kept[0].shape
    assert not torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], kept[0])

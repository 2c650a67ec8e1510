"""The bridge by class names: its formula by loops, and real sounds found by sentences without any training."""

from __future__ import annotations

import math

import pytest
import torch
from published import fetched, stamp
from torch import Tensor

from pullpush.encoders import TEXT, AudioEncoder, TextEncoder
from pullpush.encoders.yamnet import Bridge, YAMNet, class_names

QUERIES = {
    "A cow is mooing in the meadow.": "animals/mammals/bovines/cow_white",
    "You can hear the cawing of a crow.": "animals/birds/crow",
    "A bumblebee buzzes past.": "animals/insects/bee",
    "Someone plays a fanfare on a brass instrument.": "military/final-roll-call",
    "A lamb is bleating.": "animals/mammals/bovines/sheep",
    "A fire engine drives by with its siren on.": "vehicles/emergency/firetruck",
}
MEANINGS = {"low": [1.0, 0.0], "high": [0.0, 2.0], "a deep tone": [3.0, 1.0]}


class Tagger(AudioEncoder):
    """Scores of two classes are the first two samples."""

    def tag(self, audio, lengths):
        return audio[:, :2]


class Reader(TextEncoder):
    """Meanings by heart."""

    def forward(self, texts, languages=None):
        return Tensor([MEANINGS[text] for text in texts])


def test_similarity_is_the_formula_by_loops():
    model = Bridge(Tagger(), ["low", "high"], Reader(), softness=0.5)
    found = float(model.encode_text(["a deep tone"]) @ model.encode_audio(torch.tensor([[0.64, 0.09, 0.5]])).T)
    cosines = 3 / math.sqrt(10), 1 / math.sqrt(10)
    low, high = (math.exp(cosine / 0.5) for cosine in cosines)
    heard = math.sqrt(0.64), math.sqrt(0.09)
    assert found == pytest.approx((low * heard[0] + high * heard[1]) / math.hypot(low, high) / math.hypot(*heard))
    assert float(model.weights(["a deep tone"])[0, 0]) == pytest.approx(low / (low + high))


def test_there_is_nothing_in_it_to_train():
    model = Bridge(YAMNet(pretrained=False, frozen=True), ["class"] * 521, TEXT["hashed"].make())
    assert not model.encode_audio(torch.ones(1, 16_000)).requires_grad


def first_places(ears):
    """How many of the sentences find their recording first, among all of them."""
    model = Bridge(ears, fetched(class_names), TEXT["use"].make())
    clips = [stamp(name, sample_rate=model.sample_rate)[None] for name in QUERIES.values()]
    similarity = model.encode_text(list(QUERIES)) @ torch.cat([model.encode_audio(clip) for clip in clips]).T
    return int((similarity.argmax(dim=1) == torch.arange(len(QUERIES))).sum())


def test_sentences_find_sounds_without_training(home):
    assert first_places(fetched(lambda: YAMNet(frozen=True))) >= 5

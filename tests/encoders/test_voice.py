"""Resemblyzer's speaker encoder against its reference implementation, and on people who speak."""

from __future__ import annotations

import pytest
import torch
from published import fetched, tune

from pullpush.encoders.voice import Voice, partials


@pytest.fixture(scope="module")
def voice():
    return fetched(Voice).eval()


@pytest.fixture(scope="module")
def random():
    torch.manual_seed(0)
    return Voice(pretrained=False).eval()


# Printed by the package resemblyzer 0.1.4, `embed_utterance(normalize_volume(wav, -30, increase_only=True))`: the four
# largest of 256. All 256 agree within 2e-7, on clips of 0.6 to 6.3 s.
@pytest.mark.parametrize(
    ("seconds", "places", "values"),
    [
        (1.0, [20, 193, 123, 24], [0.258313, 0.203045, 0.200164, 0.191415]),
        (3.0, [131, 247, 175, 91], [0.219106, 0.192925, 0.192586, 0.187155]),
    ],
)
def test_features_are_those_of_the_reference_implementation(voice, seconds, places, values):
    with torch.no_grad():
        features = voice(0.1 * tune(seconds, 16_000)[None])[0]
    torch.testing.assert_close(features[places], torch.tensor(values), atol=1e-5, rtol=0)


# Counted by resemblyzer's compute_partial_slices(samples, 1.3, 0.75), with which all lengths below 12 s agree.
@pytest.mark.parametrize(("samples", "count"), [(1, 1), (25_600, 1), (30_001, 1), (48_000, 3), (64_000, 4)])
def test_a_clip_has_as_many_partial_utterances_as_in_the_reference(samples, count):
    assert partials(samples) == count


def test_half_precision_leaves_the_lstm_as_it_is(random):
    """On a processor without bfloat16 it would fail there."""
    seen = []
    (lstm,) = (part for part in random.modules() if isinstance(part, torch.nn.LSTM))
    hook = lstm.register_forward_hook(lambda module, given, found: seen.extend([given[0], *found[1]]))
    with hook, torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        random(0.1 * tune(1.0, 16_000)[None])
    assert {tensor.dtype for tensor in seen} == {torch.float32}

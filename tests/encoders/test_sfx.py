"""aiSFX against its reference implementation, and on recordings."""

from __future__ import annotations

import pytest
import torch
from published import fetched, tune

from pullpush.encoders.sfx import FRAMES, HOP, SFX, SFX_RATE


@pytest.fixture(scope="module")
def sfx():
    return fetched(SFX).eval()


@pytest.fixture(scope="module")
def random():
    torch.manual_seed(0)
    return SFX(pretrained=False).eval()


# Printed by the package aisfx 0.1.2 with essentia 2.1b6 (its own spectrogram), `emb_hop_size=0.5`,
# `drop_partial_block=False`, mean over blocks: the four largest of 512, and the norm. All 512 agree within 3e-6.
@pytest.mark.parametrize(
    ("seconds", "places", "values", "norm"),
    [
        (2.0, [289, 188, 310, 248], [4.342328, 4.330904, 4.056023, 4.038721], 31.191702),
        (5.0, [289, 170, 310, 188], [5.127416, 4.628163, 4.435022, 4.389890], 32.26356),
    ],
)
def test_features_are_those_of_the_reference_implementation(sfx, seconds, places, values, norm):
    with torch.no_grad():
        features = sfx(tune(seconds, SFX_RATE)[None])[0]
    torch.testing.assert_close(features[places], torch.tensor(values), atol=1e-4, rtol=0)
    assert float(features.norm()) == pytest.approx(norm, abs=1e-3)


def test_every_sample_is_heard(random):
    audio = torch.zeros(2, 3 * SFX_RATE)
    audio[1, -HOP:] = tune(1, SFX_RATE)[:HOP]
    with torch.no_grad():
        silent, ending = random(audio)
    assert (silent - ending).norm() > 1e-3


@pytest.mark.parametrize("step", [0, FRAMES + 1])
def test_steps_that_leave_frames_out_are_refused(step):
    with pytest.raises(ValueError, match=f"1 … {FRAMES} frames.* got {step}"):
        SFX(pretrained=False, step=step)

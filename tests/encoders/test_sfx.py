"""aiSFX against its reference implementation, and on recordings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from published import fetched, stamp, tune

from pullpush.data.language.vocabulary import load_events
from pullpush.encoders.sfx import FRAMES, HOP, MELS, SFX, SFX_RATE, mel_bank


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


def test_a_mel_filter_weighs_the_frequencies_of_its_band_and_sums_to_one():
    bank = mel_bank()
    assert bank.shape == (1025, MELS)
    np.testing.assert_allclose(bank.sum(axis=0), 1, rtol=1e-6)
    centre = bank.argmax(axis=0) * SFX_RATE / 2048
    assert (np.diff(centre) > 0).all()
    assert centre[-1] > 20_000


def test_recordings_of_a_kind_are_neighbours(sfx, random):
    kinds = ("bird", "instrument", "vehicle")
    takes = [(event.category, name) for event in load_events() if event.category in kinds for name in event.recordings]
    waves = [stamp(name, sample_rate=SFX_RATE)[: 2 * SFX_RATE] for _, name in takes]

    def neighbours_alike(encoder):
        with torch.no_grad():
            features = torch.cat([encoder(wave[None]) for wave in waves])
        features = torch.nn.functional.normalize(features - features.mean(dim=0))
        nearest = (features @ features.T).fill_diagonal_(-1).argmax(dim=1).tolist()
        return np.mean([takes[one][0] == takes[other][0] for one, other in enumerate(nearest)])

    assert neighbours_alike(sfx) > 0.75
    assert neighbours_alike(random) < 0.65


def test_a_tone_of_twelve_kilohertz_is_heard(random):
    time = torch.arange(SFX_RATE) / SFX_RATE
    tone = torch.sin(2 * torch.pi * 12_000 * time)[None]
    with torch.no_grad():
        assert (random(tone) - random(torch.zeros_like(tone))).norm() > 0.1


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

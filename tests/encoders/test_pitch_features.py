"""Basic Pitch against its published graph, and on notes that are known."""

from __future__ import annotations

import pytest
import torch
from published import fetched, tune

from pullpush.encoders.pitch_features import BINS, FRAMES, KEYS, PITCH_RATE, SAMPLES, ConstantQ, PitchFeatures


@pytest.fixture(scope="module")
def pitch():
    return fetched(PitchFeatures).eval()


def features(encoder, audio, lengths=None):
    with torch.no_grad():
        return encoder(audio, lengths).view(-1, 3, KEYS)


# Printed by onnxruntime 1.31 of nmp.onnx in basic-pitch 0.4.0: the four keys with the highest mean of note posteriors.
# All posteriors of contours, notes and onsets agree within 5e-7.
def test_features_are_those_of_the_reference_implementation(pitch):
    notes, highest, onsets = features(pitch, tune(2, PITCH_RATE)[None, :SAMPLES])[0]
    keys = [36, 43, 48, 71]
    for found, wanted in (
        (notes, [0.394650, 0.387421, 0.312531, 0.171034]),
        (highest, [0.902066, 0.884884, 0.887126, 0.418225]),
        (onsets, [0.192084, 0.193241, 0.133988, 0.104198]),
    ):
        torch.testing.assert_close(found[keys], torch.tensor(wanted), atol=1e-5, rtol=0)


def test_the_transform_has_a_tone_in_its_bin():
    time = torch.arange(SAMPLES) / PITCH_RATE
    tones = torch.stack([torch.sin(2 * torch.pi * 27.5 * 2 ** (place / 36) * time) for place in (36, 100, 300)])
    spectrum = ConstantQ()(tones)
    assert spectrum.shape == (3, FRAMES, BINS)
    assert spectrum[:, FRAMES // 2].argmax(dim=1).tolist() == [36, 100, 300]
    assert (ConstantQ()(torch.zeros(1, SAMPLES)) == 0).all()

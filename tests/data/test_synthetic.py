"""The synthetic bank needs nothing, is the same everywhere, and its events can be told apart."""

import pytest
import torch
from torchaudio.transforms import MelSpectrogram

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import synthetic
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.scenes.scene import Scene, Sound

EVENTS = synthetic.synthetic_events()
CLIPS = synthetic.synthetic_clips()
NAMES = [event.name for event in EVENTS]


def test_twelve_events_in_eight_languages_with_near_misses_in_every_category():
    assert len(EVENTS) == len(CLIPS) == 12
    assert sorted(NAMES) == NAMES
    assert all(set(event.phrases) == set(LANGUAGES) for event in EVENTS)
    categories = [event.category for event in EVENTS]
    assert all(categories.count(category) >= 2 for category in categories)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_grammar_can_tell_every_event(code):
    for number in range(len(EVENTS)):
        texts = captions(Scene((Sound(number, 0, 0.0),), "single", None, 2.0), EVENTS, language=code)
        assert len(set(texts)) == 5


@pytest.mark.parametrize("name", NAMES)
def test_clips_vary_and_are_well_formed(name):
    clips = CLIPS[NAMES.index(name)]
    assert len(clips) >= 2
    for clip in clips:
        assert clip.dtype == torch.float32
        assert 0.4 <= len(clip) / SAMPLE_RATE <= 1.6
        assert torch.isfinite(clip).all()
        assert clip.abs().max() < 1
        assert clip.square().mean().sqrt() <= 0.1 + 1e-4
        assert clip.square().mean().sqrt() > 0.02
        assert clip[[0, -1]].abs().max() < 0.01, "no click at the ends"
    shortest = min(map(len, clips))
    assert not torch.allclose(clips[0][:shortest], clips[1][:shortest], atol=1e-2)


def test_events_differ_more_than_their_variants():
    """By the nearest other clip of their mean log-mel spectra, or, for the sweeps, by which half is the higher."""
    mel = MelSpectrogram(SAMPLE_RATE, n_fft=512, n_mels=40)

    def spectrum(clip):
        frames = (mel(clip) + 1e-6).log()
        half = frames.shape[1] // 2
        return torch.cat([frames[:, :half].mean(1), frames[:, half:].mean(1), frames.std(1)])

    features = torch.stack([spectrum(clip) for clips in CLIPS for clip in clips])
    labels = torch.arange(len(CLIPS)).repeat_interleave(synthetic.VARIANTS)
    distances = torch.cdist(features, features).fill_diagonal_(float("inf"))
    assert (labels[distances.argmin(1)] == labels).float().mean() > 0.9

"""The synthetic bank needs nothing, is the same everywhere, and its events can be told apart."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
import torch
from torchaudio.transforms import MelSpectrogram

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.language import vocabulary
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.scenes import synthetic
from pullpush.data.scenes.scene import Scene, Sound

EVENTS = synthetic.synthetic_events()
CLIPS = synthetic.synthetic_clips()
NAMES = [event.name for event in EVENTS]


def test_twelve_events_in_eight_languages():
    assert len(EVENTS) == len(CLIPS) == 12
    assert sorted(NAMES) == NAMES
    assert set(synthetic.FORMULAS) == set(NAMES) >= set(synthetic.SECONDS)
    assert all(set(event.phrases) == set(LANGUAGES) for event in EVENTS)


def test_no_two_events_share_a_phrase():
    vocabulary._check_distinct(EVENTS)


def test_near_misses_exist_in_every_category():
    categories = [event.category for event in EVENTS]
    assert all(categories.count(category) >= 2 for category in categories)
    assert len(set(categories)) >= 4


@pytest.mark.parametrize("code", ["deu", "nld"])
def test_german_and_dutch_verbs_are_one_word(code):
    """The grammar moves them about."""
    verbs = [clause.verb for event in EVENTS for clause in event.phrases[code].clauses]
    assert [verb for verb in verbs if " " in verb] == []


def test_japanese_clauses_are_subject_and_continuous_verb():
    for event in EVENTS:
        for clause in event.phrases["jpn"].clauses:
            assert clause.subject.endswith("が")
            assert clause.verb.endswith(("ている", "でいる"))


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


def test_clips_are_the_same_in_another_process():
    program = (
        "import hashlib; from pullpush.data.banks.synthetic import synthetic_clips as f; "
        "print(hashlib.sha256(b''.join(c.numpy().tobytes() for g in f() for c in g)).hexdigest())"
    )
    here = hashlib.sha256(b"".join(clip.numpy().tobytes() for clips in CLIPS for clip in clips)).hexdigest()
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == here

"""Scenes are drawn from (seed, index) alone, and rendered as their graph says."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import create_bank
from pullpush.data.scenes import renderer as module
from pullpush.data.scenes.composer import GAP, SceneConfig, compose, pitch_bank, ratio, seconds, shift
from pullpush.data.scenes.renderer import layers, render
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.errors import PullPushError

CONFIG = SceneConfig()
QUIET = SceneConfig(snr_db=None)


@pytest.fixture(scope="module")
def bank(module_home):
    return create_bank("synthetic")


def draw(bank, config=CONFIG, *, seed=0, number=200):
    return [compose(bank, config, seed=seed, index=index) for index in range(number)]


# ---------------------------------------------------------------- composing


def test_a_scene_depends_on_seed_and_index_alone(bank):
    assert draw(bank, number=20) == draw(bank, number=20)
    assert compose(bank, CONFIG, seed=0, index=7) == draw(bank, number=20)[7], "not on the scenes before it"
    assert draw(bank, number=20) != draw(bank, number=20, seed=1)
    assert len(set(draw(bank))) == 200


@given(
    seed=st.integers(0, 10**9),
    index=st.integers(0, 10**6),
    most=st.integers(1, 4),
    duration=st.sampled_from([2.5, 4.0, 10.0]),
    overlap=st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_scenes_keep_to_their_configuration(bank, seed, index, most, duration, overlap):
    config = SceneConfig(max_events=most, duration=duration, min_duration=2.0, p_overlap=overlap)
    scene = compose(bank, config, seed=seed, index=index)
    assert 1 <= len(scene.sounds) <= most
    assert len(set(scene.events)) == len(scene.sounds), "different events"
    assert 2.0 <= scene.duration <= duration
    assert scene.snr_db is None or config.snr_db[0] <= scene.snr_db <= config.snr_db[1]
    for sound in scene.sounds:
        assert 0 <= sound.onset < scene.duration
        assert abs(sound.semitones) <= config.max_semitones
        assert config.gain_db[0] <= sound.gain_db <= config.gain_db[1]
        assert 1 <= sound.repeats <= config.max_repeats
        assert 0 <= sound.clip < len(bank.clips[sound.event])
    onsets = [sound.onset for sound in scene.sounds]
    if scene.relation == "sequence":
        assert np.diff(onsets).min() >= GAP - 1e-3
    if scene.relation == "overlap":
        shortest = min(seconds(bank, sound) for sound in scene.sounds)
        assert max(onsets) - min(onsets) <= shortest / 2 + 1e-3, "all sound at once"


def test_every_choice_occurs_about_as_often_as_asked(bank):
    scenes = draw(bank, number=600)
    several = [scene for scene in scenes if len(scene.sounds) > 1]
    sounds = [sound for scene in scenes for sound in scene.sounds]
    assert np.mean([len(scene.sounds) == 1 for scene in scenes]) == pytest.approx(CONFIG.p_single, abs=0.05)
    assert np.mean([scene.relation == "overlap" for scene in several]) == pytest.approx(CONFIG.p_overlap, abs=0.07)
    assert np.mean([scene.snr_db is not None for scene in scenes]) == pytest.approx(CONFIG.p_noise, abs=0.07)
    assert np.mean([sound.far for sound in sounds]) == pytest.approx(CONFIG.p_far, abs=0.05)
    assert 0 < np.mean([sound.repeats > 1 for sound in sounds]) <= CONFIG.p_repeat + 0.05
    assert {sound.semitones for sound in sounds} == set(range(-3, 4))
    assert {sound.event for sound in sounds} == set(range(len(bank)))


def test_no_allowed_set_says_so(bank):
    with pytest.raises(PullPushError, match="no set of 1 to 3"):
        compose(bank, CONFIG, seed=0, index=0, events_allowed=lambda events: False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_events": 0}, "a scene needs 1 <= min_events"),
        ({"min_events": 4}, "a scene needs 1 <= min_events <= max_events"),
        ({"max_events": 9}, "a scene needs duration of at least 0.5 s per event"),
        ({"min_duration": 5.0}, "a scene needs 0 < min_duration <= duration"),
        ({"p_far": 1.5}, "scene: p_far must be at most 1, got 1.5"),
        ({"snr_db": (20, 10)}, "a scene needs snr_db as"),
        ({"max_semitones": 13}, "scene: max_semitones must be at most 12, got 13"),
        ({"max_repeats": 0}, "scene: max_repeats must be at least 1, got 0"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SceneConfig(**options)


# ---------------------------------------------------------------- rendering


@given(index=st.integers(0, 10**6), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_rendered_scenes_are_as_long_as_they_say_and_never_clip(bank, index, seed):
    scene = compose(bank, CONFIG, seed=seed, index=index)
    wave = render(scene, bank, CONFIG)
    assert wave.dtype == torch.float32
    assert wave.shape == (round(scene.duration * SAMPLE_RATE),)
    assert torch.isfinite(wave).all()
    assert 0 < wave.abs().max() < 1
    assert torch.equal(wave, render(scene, bank, CONFIG)), "the same every time"


@given(index=st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_noise_lies_as_far_below_the_sounds_as_the_scene_says(bank, index):
    scene = compose(bank, SceneConfig(p_noise=1.0), seed=0, index=index)
    sounds, noise = layers(scene, bank, CONFIG)
    measured = 10 * np.log10(np.mean(sounds.astype(np.float64) ** 2) / np.mean(noise.astype(np.float64) ** 2))
    assert measured == pytest.approx(scene.snr_db, abs=0.01)


def test_without_noise_there_is_silence_before_the_first_sound(bank):
    scene = Scene((Sound(0, 0, 1.0),), "single", None, 4.0)
    wave = render(scene, bank, QUIET)
    assert not wave[:SAMPLE_RATE].any()
    length = len(bank.clips[0][0])
    assert torch.allclose(wave[SAMPLE_RATE : SAMPLE_RATE + length], bank.clips[0][0])
    assert not wave[SAMPLE_RATE + length :].any()


def test_level_repetition_and_distance_are_heard(bank):
    clip = bank.clips[0][0]

    def heard(**options):
        return render(Scene((Sound(0, 0, 0.0, **options),), "single", None, 4.0), bank, QUIET)

    near = heard()
    assert torch.allclose(heard(gain_db=-6.0), near * 10 ** (-6 / 20), atol=1e-6)
    gap = round(GAP * SAMPLE_RATE)
    twice = heard(repeats=2)
    assert torch.allclose(twice[len(clip) + gap : 2 * len(clip) + gap], clip, atol=1e-6)
    assert not twice[len(clip) : len(clip) + gap].any()
    far = heard(far=True)
    assert far.square().sum() < 0.5 * near.square().sum()
    spectra = [torch.fft.rfft(wave).abs() for wave in (near, far)]
    treble = [float(s[len(s) // 2 :].square().sum() / s.square().sum()) for s in spectra]
    assert treble[1] < treble[0], "duller"


def test_in_a_sequence_each_sound_is_alone_until_the_next_begins(bank):
    config = SceneConfig(snr_db=None, min_events=2, max_events=3, p_overlap=0.0)
    for scene in draw(bank, config, number=40):
        mix, _ = layers(scene, bank, config)
        ends = [sound.onset for sound in scene.sounds[1:]] + [scene.duration]
        for sound, end in zip(scene.sounds, ends, strict=True):
            alone, _ = layers(Scene((sound,), "single", None, end), bank, config)
            start = round(sound.onset * SAMPLE_RATE)
            assert alone[start:].any()
            assert np.array_equal(mix[start : len(alone)], alone[start:])


def test_in_an_overlap_all_sound_at_once(bank):
    config = SceneConfig(snr_db=None, min_events=2, max_events=3, p_overlap=1.0)
    for scene in draw(bank, config, number=40):
        mix, _ = layers(scene, bank, config)
        alone = [layers(Scene((sound,), "single", None, scene.duration), bank, config)[0] for sound in scene.sounds]
        assert np.allclose(mix, sum(alone), atol=1e-6)
        ends = [sound.onset + seconds(bank, sound) for sound in scene.sounds]
        assert max(sound.onset for sound in scene.sounds) < min(ends)


def test_pitch_shifts_by_the_semitones_that_are_asked_for():
    time = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    wave = np.sin(2 * np.pi * 500 * time).astype(np.float32)
    for semitones in (-12, -3, 1, 7):
        shifted = shift(wave, semitones)
        peak = np.abs(np.fft.rfft(shifted * np.hanning(len(shifted)))).argmax() * SAMPLE_RATE / len(shifted)
        assert peak == pytest.approx(500 * 2 ** (semitones / 12), rel=0.01)
        assert len(shifted) == pytest.approx(len(wave) / 2 ** (semitones / 12), rel=0.01)
    assert float(ratio(12)) == 2


def test_the_pitch_bank_holds_every_clip_at_every_shift(bank):
    pitches = pitch_bank(bank, 2)
    for event, clips in enumerate(bank.clips):
        for number, clip in enumerate(clips):
            for semitones in (-2, 0, 1):
                assert np.array_equal(pitches.clip(event, number, semitones), shift(clip.numpy(), semitones))


def test_a_scene_of_another_bank_is_refused(bank):
    for sound in (Sound(99, 0, 0.0), Sound(0, 99, 0.0), Sound(0, 0, 0.0, semitones=5)):
        with pytest.raises(ValueError, match=r"another bank|semitones"):
            render(Scene((sound,), "single", None, 2.0), bank, CONFIG)


def test_distance_attenuates_white_noise_as_documented():
    noise = np.random.default_rng(0).standard_normal(SAMPLE_RATE).astype(np.float32)
    distant = module._heard(noise, Sound(0, 0, 0.0, far=True), 2 * SAMPLE_RATE)
    level = 10 * np.log10(np.mean(distant[:SAMPLE_RATE] ** 2) / np.mean(noise**2))
    assert level == pytest.approx(module.FAR_DB, abs=0.5)

"""Recordings come in as mono, 16 kHz and finite, or with an error that names the file."""

import numpy as np
import pytest
import soundfile
import torch

from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.errors import AudioError


def tone(seconds: float, rate: int, hertz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def peak_frequency(wave: torch.Tensor) -> float:
    spectrum = torch.fft.rfft(wave * torch.hann_window(len(wave))).abs()
    return float(spectrum.argmax()) * SAMPLE_RATE / len(wave)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100])
def test_any_sample_rate_becomes_16_khz_at_the_same_pitch(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", tone(0.5, rate), rate)
    wave = load_audio(tmp_path / "a.wav")
    assert wave.dtype == torch.float32
    assert abs(len(wave) - 8000) <= 1
    assert peak_frequency(wave) == pytest.approx(440, abs=3)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
def test_formats(tmp_path, suffix):
    soundfile.write(tmp_path / f"a.{suffix}", tone(0.5, 16_000), 16_000)
    assert peak_frequency(load_audio(tmp_path / f"a.{suffix}")) == pytest.approx(440, abs=4)


def test_stereo_is_mixed_to_one_channel(tmp_path):
    left, right = tone(0.1, 16_000, 300), tone(0.1, 16_000, 500)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 16_000, subtype="FLOAT")
    torch.testing.assert_close(load_audio(tmp_path / "a.wav"), torch.from_numpy((left + right) / 2).float())


def test_a_missing_recording_is_named(tmp_path):
    with pytest.raises(AudioError, match=r"no recording at .*gone\.wav"):
        load_audio(tmp_path / "gone.wav")


def test_a_half_written_recording_is_named(tmp_path):
    soundfile.write(tmp_path / "a.flac", tone(1, 16_000), 16_000)
    (tmp_path / "a.flac").write_bytes((tmp_path / "a.flac").read_bytes()[:30])
    with pytest.raises(AudioError, match=r"a\.flac"):
        load_audio(tmp_path / "a.flac")


def test_silence_is_told_from_a_quiet_sound():
    quiet = torch.from_numpy(tone(0.2, 16_000)).float() * 0.01
    assert check_audible(quiet, "quiet") is quiet
    with pytest.raises(AudioError, match="hush is silent"):
        check_audible(torch.zeros(16_000), "hush")
    with pytest.raises(AudioError, match="silent"):
        check_audible(torch.zeros(0), "hush")


def test_trimming_keeps_the_sound_and_cuts_the_rest():
    sound = torch.from_numpy(tone(0.3, 16_000)).float()
    wave = torch.cat([torch.zeros(4000), sound, torch.zeros(6000)])
    trimmed = trim_silence(wave)
    assert len(sound) <= len(trimmed) <= len(sound) + 320
    assert float(trimmed.square().sum()) == pytest.approx(float(sound.square().sum()))
    assert len(trim_silence(torch.zeros(500))) == 500
    assert len(trim_silence(torch.full((1,), 0.5))) == 1


def test_normalising_sets_the_level_unless_the_peak_forbids():
    wave = normalise_rms(torch.from_numpy(tone(0.5, 16_000)).float())
    assert float(wave.square().mean().sqrt()) == pytest.approx(0.1, rel=1e-4)
    click = torch.zeros(16_000)
    click[100] = 0.1
    assert float(normalise_rms(click).abs().max()) == pytest.approx(0.99)
    assert not normalise_rms(torch.zeros(10)).any()

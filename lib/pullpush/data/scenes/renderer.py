"""Audio of scenes: samples made from a scene graph, a bank and a configuration.

Rendering draws nothing but the noise, whose seed is the scene itself, so that audio can be made again from a scene.
"""

from functools import lru_cache

import numpy as np
import torch
from scipy.fft import irfft, next_fast_len
from scipy.signal import fftconvolve
from torch import Tensor

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import Bank
from pullpush.data.draws import number
from pullpush.data.scenes.composer import GAP, SceneConfig, pitch_bank
from pullpush.data.scenes.scene import Scene, Sound

PEAK = 0.95  # louder mixes are scaled down to this, so that int16 never clips
FADE = 0.02  # seconds of fade where a sound is cut
FAR_DB = -9.0  # level of a distant sound relative to a near one


def render(scene: Scene, bank: Bank, config: SceneConfig) -> Tensor:
    """The scene's audio, `(T,)` float32 at 16 kHz with `|x| < 1` and T = round(duration * 16000).

    Raises:
        ValueError: the scene asks for an event, clip or shift that this bank and configuration do not have.

    >>> from pullpush.data.banks import create_bank
    >>> bank, config = create_bank("synthetic"), SceneConfig()
    >>> scene = Scene((Sound(0, 0, onset=0.0),), "single", None, 2.0)
    >>> render(scene, bank, config).shape
    torch.Size([32000])
    """
    sounds, noise = layers(scene, bank, config)
    mix = sounds + noise
    peak = float(np.abs(mix).max(initial=0.0))
    if peak > PEAK:
        mix *= PEAK / peak
    return torch.from_numpy(mix)


def layers(scene: Scene, bank: Bank, config: SceneConfig) -> tuple[np.ndarray, np.ndarray]:
    """The sounds and the noise under them before they are mixed, each `(T,)` float32 (see `render`).

    Their mean powers over the whole scene differ by `scene.snr_db`.
    """
    pitches = pitch_bank(bank, config.max_semitones)
    length = round(scene.duration * SAMPLE_RATE)
    starts = [round(sound.onset * SAMPLE_RATE) for sound in scene.sounds]
    # In a sequence a sound ends where the next begins; otherwise only the scene's end cuts it.
    ends = [*starts[1:], length] if scene.relation == "sequence" else [length] * len(starts)
    mix = np.zeros(length, dtype=np.float32)
    for sound, start, end in zip(scene.sounds, starts, ends, strict=True):
        if not 0 <= sound.event < len(bank.events) or not 0 <= sound.clip < len(bank.clips[sound.event]):
            raise ValueError(f"bank {bank.name!r} has no clip {sound.clip} of event {sound.event}: another bank's?")
        if abs(sound.semitones) > config.max_semitones:
            raise ValueError(f"{sound} is shifted by more than the configuration's {config.max_semitones} semitones")
        wave = _heard(pitches.clip(sound.event, sound.clip, sound.semitones), sound, end - start)
        mix[start : start + len(wave)] += wave
    if scene.snr_db is None:
        return mix, np.zeros_like(mix)
    noise = _noise(length, scene)
    power = float(np.mean(mix.astype(np.float64) ** 2)) / 10 ** (scene.snr_db / 10)
    return mix, noise * np.float32(np.sqrt(power))


def _heard(wave: np.ndarray, sound: Sound, room: int) -> np.ndarray:
    """The recording as it is heard: repeated, distant, at its level, and cut to `room` samples with a fade."""
    if sound.repeats > 1:
        quiet = np.zeros(round(GAP * SAMPLE_RATE), dtype=np.float32)
        wave = np.concatenate([wave, *[quiet, wave] * (sound.repeats - 1)])
    gain = 10 ** (sound.gain_db / 20)
    if sound.far:
        wave = fftconvolve(wave, _distance_response())  # duller, softer and with a little reverberation
    wave = wave[:room] * np.float32(gain)
    if len(wave) == room:
        fade = min(room, round(FADE * SAMPLE_RATE))
        wave[room - fade :] *= np.linspace(1, 0, fade, dtype=np.float32)
    return wave


@lru_cache(maxsize=1)
def _distance_response() -> np.ndarray:
    """Impulse response of distance, float32: a first-order low-pass at 1.5 kHz, then a decaying diffuse tail."""
    time = np.arange(round(0.3 * SAMPLE_RATE)) / SAMPLE_RATE
    tail = np.random.default_rng(0).standard_normal(len(time)) * 10 ** (-3 * time / 0.3)  # -60 dB after 0.3 s
    room = 0.5 * tail / np.linalg.norm(tail)
    room[0] += 1.0
    lowpass = np.exp(-2 * np.pi * 1500 * time)
    response = np.convolve(room, lowpass)[: len(time)]
    return (10 ** (FAR_DB / 20) * response / np.linalg.norm(response)).astype(np.float32)


def _noise(length: int, scene: Scene) -> np.ndarray:
    """Noise of unit power, `(length,)` float32, its colour between white and brown drawn from the scene."""
    rng = np.random.default_rng(number(scene))
    size = next_fast_len(max(length, 2), real=True)
    frequency = np.maximum(np.arange(size // 2 + 1, dtype=np.float32), 20 * size / SAMPLE_RATE)  # flat below 20 Hz
    amplitude = frequency ** np.float32(-rng.uniform(0, 2) / 2)
    spectrum = rng.standard_normal(2 * len(frequency), dtype=np.float32).view(np.complex64)
    noise = irfft(spectrum * amplitude, size)[:length]
    return noise / np.float32(np.sqrt(np.mean(noise.astype(np.float64) ** 2)))

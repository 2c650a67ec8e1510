"""Twelve events made by formula: for tests and the `smoke` profile, where there is no network.

Each is the plainest signal that still resembles what the languages (`languages/eng.yaml` …) call it, in a few variants;
events of one category (two sweeps, two noises …) are near misses of each other, as two birds are among real recordings.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from scipy.signal import butter, sosfilt
from torch import Tensor

from pullpush.data.audio import SAMPLE_RATE, normalise_rms
from pullpush.data.banks import BankCard
from pullpush.data.language.vocabulary import Event, phrases_of
from pullpush.data.languages import load_languages

VARIANTS = 3  # clips per event
FADE = 0.01  # seconds, so that no clip begins or ends with a click


def synthetic_events() -> tuple[Event, ...]:
    """The events, sorted by name; they have no recordings.

    >>> [event.name for event in synthetic_events()[:3]]
    ['beep', 'bell', 'buzz']
    """
    words = {code: language.synthetic for code, language in load_languages().items()}
    return tuple(Event(name, EVENTS[name][0], (), phrases_of(name, words)) for name in EVENTS)


@cache
def synthetic_clips() -> tuple[tuple[Tensor, ...], ...]:
    """`VARIANTS` clips of every event, `(T,)` float32 at 16 kHz of 0.4 to 1.5 s: the same in every process."""
    return tuple(
        tuple(_clip(event.name, number, variant) for variant in range(VARIANTS))
        for number, event in enumerate(synthetic_events())
    )


def _clip(name: str, number: int, variant: int) -> Tensor:
    """One variant: its formula at a pitch and a length that the variant decides, faded and normalised."""
    rng = np.random.default_rng([number, variant])
    height = 2 ** rng.uniform(-0.2, 0.2)  # up to 2.4 semitones either way: scenes shift further
    _, about, formula = EVENTS[name]
    seconds = rng.uniform(0.8, 1.2) * about
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    wave = formula(time, height, rng)
    edge = np.linspace(0, 1, round(FADE * SAMPLE_RATE))
    wave[: len(edge)] *= edge
    wave[-len(edge) :] *= edge[::-1]
    return normalise_rms(torch.from_numpy(wave.astype(np.float32)))


def _tone(time: np.ndarray, frequency: np.ndarray | float, *, harmonics: int = 1) -> np.ndarray:
    """A tone whose frequency in Hz may change over time, with harmonics falling as 1/k."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(frequency, time.shape)) / SAMPLE_RATE
    return sum((np.sin(k * phase) / k for k in range(1, harmonics + 1)), np.zeros_like(phase))


def _strokes(time: np.ndarray, *, every: float, decay: float) -> np.ndarray:
    """An envelope that is struck every `every` seconds and falls to 1/e in `decay` seconds."""
    return np.exp(-(time % every) / decay)


def _band(wave: np.ndarray, low: float, high: float) -> np.ndarray:
    return sosfilt(butter(4, (low, high), "bandpass", fs=SAMPLE_RATE, output="sos"), wave)


def _bell(time: np.ndarray, height: float) -> np.ndarray:
    partials = (0.5, 1, 1.2, 1.5, 2, 2.66)  # hum, prime, tierce, quint, nominal of a church bell, and one above
    tones = (_tone(time, 600 * height * partial) * np.exp(-3 * partial * time) for partial in partials)
    return sum(tones, np.zeros_like(time))


def _rain(time: np.ndarray, height: float, rng: np.random.Generator) -> np.ndarray:
    drops = rng.standard_normal(len(time)) * (rng.random(len(time)) < 0.01) * 8
    return _band(drops + 0.3 * rng.standard_normal(len(time)), 500 * height, 4000)


# Time (T,) in seconds, height (a factor on frequencies), random numbers → samples (T,) float64.
Formula = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]
EVENTS: dict[str, tuple[str, float, Formula]] = {  # category, about how many seconds, formula
    "beep": ("signal", 0.6, lambda time, height, rng: _tone(time, 1000 * height) * (time % 0.2 < 0.1)),
    "bell": ("percussion", 1.2, lambda time, height, rng: _bell(time, height)),
    "buzz": (
        "machine",
        1.0,
        lambda time, height, rng: _tone(time, 220 * height, harmonics=25) * (1 + 0.3 * np.sin(2 * np.pi * 55 * time)),
    ),
    "fall": ("sweep", 0.7, lambda time, height, rng: _tone(time, 300 * height * 8 ** (1 - time / time[-1]))),
    "hiss": ("noise", 1.0, lambda time, height, rng: _band(rng.standard_normal(len(time)), 4000 * height, 7000)),
    "hum": (
        "machine",
        1.0,
        lambda time, height, rng: _tone(time, 100 * height, harmonics=5) * (1 + 0.5 * np.sin(2 * np.pi * 6 * time)),
    ),
    "knock": (
        "percussion",
        0.6,
        lambda time, height, rng: _tone(time, 160 * height, harmonics=4) * _strokes(time, every=0.2, decay=0.03),
    ),
    "rain": ("noise", 1.2, _rain),
    "rise": ("sweep", 0.7, lambda time, height, rng: _tone(time, 300 * height * 8 ** (time / time[-1]))),
    "siren": (
        "signal",
        1.0,
        lambda time, height, rng: _tone(time, height * (700 + 250 * np.sin(2 * np.pi * 2 * time)), harmonics=3),
    ),
    "tick": (
        "percussion",
        1.0,
        lambda time, height, rng: rng.standard_normal(len(time)) * _strokes(time, every=0.25 / height, decay=0.004),
    ),
    "whistle": (
        "signal",
        0.6,
        lambda time, height, rng: (
            _tone(time, 2300 * height * (1 + 0.03 * np.sin(2 * np.pi * 30 * time)))
            + 0.05 * rng.standard_normal(len(time))
        ),
    ),
}


CARD = BankCard(
    name="synthetic",
    make=lambda _: (synthetic_events(), synthetic_clips()),
    title="Synthetic",
    about="Twelve events made by formula, in three variants each: for tests and the profile smoke.",
    source="ours, in data/banks/synthetic.py",
)

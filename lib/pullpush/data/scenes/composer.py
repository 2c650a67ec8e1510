"""Scenes composed from a bank of recorded events: which sound, in which relation, how each is heard.

Composing draws from `(seed, index)` alone, so that a scene is known without its audio (see renderer.py). Every
recording is resampled once at every pitch that scenes may ask for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.signal import resample_poly

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import Bank
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.errors import PullPushError
from pullpush.settings import Count, Share, check_fields

GAP = 0.1  # seconds of quiet between repetitions, and at least between sounds of a sequence
SLACK = 0.5  # most seconds of quiet before, between and after sounds
TRIES = 500  # draws of an event set before another number of events is drawn


@dataclass(frozen=True)
class PitchBank:
    """Shifted recordings, end to end.

    samples: `(total,)` float32 at 16 kHz; bounds: `(recordings, 2 * most + 1, 2)` int64, where each
    recording begins and ends at each shift from -most to most; first: `(events,)` int64, each event's first recording.
    """

    samples: np.ndarray
    bounds: np.ndarray
    first: np.ndarray
    most: int

    def clip(self, event: int, clip: int, semitones: int) -> np.ndarray:
        """One recording at one shift, `(T,)` float32, read-only."""
        start, stop = self.bounds[self.first[event] + clip, semitones + self.most]
        return self.samples[start:stop]


def ratio(semitones: int) -> Fraction:
    """Speed factor of a shift as a fraction: 2^(semitones / 12) within 0.2 cents up to an octave."""
    return Fraction(2 ** (semitones / 12)).limit_denominator(200)


@lru_cache(maxsize=4)
def pitch_bank(bank: Bank, most: int) -> PitchBank:
    """The bank at all shifts from -`most` to `most` semitones, each recording resampled to each: made once a process.

    A shift changes speed with pitch, as a tape does, so that a recording up a semitone is 6 % shorter.
    """
    waves = [
        shift(clip.numpy(), semitones) for clips in bank.clips for clip in clips for semitones in range(-most, most + 1)
    ]
    stops = np.cumsum([len(wave) for wave in waves], dtype=np.int64)
    starts = np.concatenate([[0], stops[:-1]])
    counts = [len(clips) for clips in bank.clips]
    bounds = np.stack([starts, stops], axis=-1).reshape(sum(counts), 2 * most + 1, 2)
    return PitchBank(np.concatenate(waves), bounds, np.cumsum([0, *counts[:-1]], dtype=np.int64), most)


def shift(wave: np.ndarray, semitones: int) -> np.ndarray:
    """`wave` `(T,)` float32 played faster (up) or slower (down) by `semitones`: `(~T / 2^(semitones/12),)`."""
    if semitones == 0:
        return wave.astype(np.float32)
    speed = ratio(semitones)
    return resample_poly(wave, speed.denominator, speed.numerator).astype(np.float32)


@dataclass(frozen=True)
class SceneConfig:
    """What scenes sound like; every default is the book's `quick` world.

    duration, min_duration: longest and shortest scene in seconds; min_events, max_events: how many different events a
    scene holds; p_single: how often it holds just one, where `min_events` is 1 (otherwise all numbers are equally
    likely); snr_db: range of the level of the sounds over the noise, None for no noise at all; p_noise: how often
    there is noise; p_overlap: how often several events sound together rather than in sequence; p_far, p_repeat: how
    often a sound is distant, or repeated where it is short enough; max_semitones: largest shift in pitch either way;
    gain_db: range of the level of a sound.
    """

    duration: float = 4.0
    min_duration: float = 2.0
    min_events: int = 1
    max_events: int = 3
    p_single: Share = 0.15
    snr_db: tuple[float, float] | None = (5.0, 25.0)
    p_noise: Share = 0.5
    p_overlap: Share = 0.4
    p_far: Share = 0.2
    p_repeat: Share = 0.2
    max_repeats: Count = 3
    max_semitones: Annotated[int, Field(ge=0, le=12)] = 3
    gain_db: tuple[float, float] = (-6.0, 0.0)

    def __post_init__(self) -> None:
        check_fields(self, of="scene")
        _require(1 <= self.min_events <= self.max_events, "1 <= min_events <= max_events", self)
        _require(0.5 * self.max_events <= self.duration, "duration of at least 0.5 s per event", self)
        _require(0 < self.min_duration <= self.duration, "0 < min_duration <= duration", self)
        for name in ("snr_db", "gain_db"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(float(value) for value in getattr(self, name)))
                low, high = getattr(self, name)
                _require(low <= high, f"{name} as (low, high)", self)


def _require(condition: bool, rule: str, config: SceneConfig) -> None:
    if not condition:
        raise ValueError(f"a scene needs {rule}, got {config}")


def compose(
    bank: Bank,
    config: SceneConfig,
    *,
    seed: int,
    index: int,
    events_allowed: Callable[[tuple[int, ...]], bool] | None = None,
) -> Scene:
    """The scene number `index` of the series `seed`: the same for the same arguments, on any machine.

    events_allowed: says of a set of event indices (a sorted tuple) whether a scene may hold it; the splits of a world
    keep their event combinations apart with it.

    Raises:
        PullPushError: the bank has fewer events than `config.min_events`, or no allowed set was found.

    >>> from pullpush.data.banks import create_bank
    >>> scene = compose(create_bank("synthetic"), SceneConfig(), seed=0, index=0)
    >>> scene == compose(create_bank("synthetic"), SceneConfig(), seed=0, index=0)
    True
    """
    rng = np.random.default_rng([seed, index])
    return _arrange(bank, config, _draw_events(len(bank.events), config, rng, events_allowed), rng)


def single(bank: Bank, event: int, config: SceneConfig, *, seed: int, index: int) -> Scene:
    """A scene with one event alone, a draw of `(seed, event, index)`."""
    return _arrange(bank, config, [event], np.random.default_rng([seed, event, index]))


def _draw_events(
    total: int, config: SceneConfig, rng: np.random.Generator, allowed: Callable[[tuple[int, ...]], bool] | None
) -> list[int]:
    """Different events in random order; their number is drawn first, so that splits differ in sets only."""
    sizes = list(range(config.min_events, min(config.max_events, total) + 1))
    many = sum(size > 1 for size in sizes)
    p_single = config.p_single if many else 1.0
    odds = np.array([p_single if size == 1 else (1 - p_single) / many for size in sizes])
    if many == len(sizes):  # no scene of one event: all numbers are equally likely
        odds[:] = 1.0
    while odds.sum() > 0:
        choice = rng.choice(len(sizes), p=odds / odds.sum())
        for _ in range(TRIES):
            events = rng.permutation(total)[: sizes[choice]].tolist()
            if allowed is None or allowed(tuple(sorted(events))):
                return events
        odds[choice] = 0  # no such set among these many draws: a small bank; try another number of events
    raise PullPushError(
        f"no set of {config.min_events} to {config.max_events} of the bank's {total} events is left for this split: "
        "use a bank with more events, or lower min_events"
    )


def _arrange(bank: Bank, config: SceneConfig, events: Sequence[int], rng: np.random.Generator) -> Scene:
    """Draw how each event is heard and when, for events in their order."""
    relation = "single"
    if len(events) > 1:
        relation = "overlap" if rng.random() < config.p_overlap else "sequence"
    share = config.duration - 2 * SLACK if relation != "sequence" else config.duration / len(events)
    drawn = [_draw_sound(bank, config, event, share, rng) for event in events]
    lengths = [seconds(bank, sound) for sound in drawn]
    place = _together if relation == "overlap" else _in_turn
    onsets, end = place(lengths, config.duration, rng)
    tail = rng.uniform(0, SLACK)
    duration = round(float(np.clip(end + tail, config.min_duration, config.duration)), 3)
    snr = None
    if config.snr_db is not None and rng.random() < config.p_noise:
        snr = round(rng.uniform(*config.snr_db), 1)
    # int, float: NumPy's scalars would not survive JSON
    placed = [replace(sound, onset=round(float(onset), 3)) for sound, onset in zip(drawn, onsets, strict=True)]
    return Scene(tuple(sorted(placed, key=lambda sound: sound.onset)), relation, snr, duration)


def _draw_sound(bank: Bank, config: SceneConfig, event: int, share: float, rng: np.random.Generator) -> Sound:
    """How one event is heard; repeated only where all repetitions fit into `share` seconds uncut."""
    sound = Sound(
        event=int(event),
        clip=int(rng.integers(len(bank.clips[event]))),
        onset=0.0,
        semitones=int(rng.integers(-config.max_semitones, config.max_semitones + 1)),
        gain_db=round(rng.uniform(*config.gain_db), 1),
        far=bool(rng.random() < config.p_far),
    )
    most = min(config.max_repeats, int(share / (seconds(bank, sound) + GAP)))
    if rng.random() < config.p_repeat and most >= 2:
        sound = replace(sound, repeats=int(rng.integers(2, most + 1)))
    return sound


def seconds(bank: Bank, sound: Sound) -> float:
    """How long a sound lasts with its shift and repetitions, where nothing cuts it."""
    once = len(bank.clips[sound.event][sound.clip]) / float(ratio(sound.semitones)) / SAMPLE_RATE
    return sound.repeats * once + (sound.repeats - 1) * GAP


def _in_turn(lengths: Sequence[float], duration: float, rng: np.random.Generator) -> tuple[list[float], float]:
    """Onsets one after another and the end; long sounds are cut to a common length where not all fit."""
    budget = duration - GAP * (len(lengths) - 1)
    cap = _common_cap(lengths, budget)
    kept = [min(length, cap) for length in lengths]
    shares = rng.dirichlet(np.ones(len(kept) + 1)) * (budget - sum(kept))
    onsets, now = [], 0.0
    for length, quiet in zip(kept, shares, strict=False):
        onsets.append(now + min(quiet, SLACK))
        now = onsets[-1] + length + GAP
    return onsets, now - GAP


def _common_cap(lengths: Sequence[float], budget: float) -> float:
    """The largest cap with sum(min(length, cap)) <= budget."""
    left = budget
    for rank, length in enumerate(sorted(lengths)):
        fair = left / (len(lengths) - rank)
        if length > fair:
            return fair
        left -= length
    return max(lengths)


def _together(lengths: Sequence[float], duration: float, rng: np.random.Generator) -> tuple[list[float], float]:
    """Onsets within half of the shortest sound, so that all sound at once, and the end."""
    start = rng.uniform(0, SLACK)
    onsets = [start + rng.uniform(0, 0.5) * min(lengths) for _ in lengths]
    return onsets, min(duration, max(o + length for o, length in zip(onsets, lengths, strict=True)))

"""Notes played on a soundfont's instruments: from keys and times to samples, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.signal import butter, sosfilt

from pullpush.data.soundfont import DRUMS, SoundFont, Zone

RATE = 44_100  # Hz in which notes are rendered
SILENT_DB = -80.0  # where a release ends


@dataclass(frozen=True)
class Note:
    """A key that is struck and let go.

    onset, length: in seconds; key: of MIDI, 60 is the middle C; velocity: 1 to 127.
    """

    onset: float
    length: float
    key: int
    velocity: int = 100


def play(
    font: SoundFont, notes: Sequence[Note], seconds: float, *, program: int = 0, drums: bool = False
) -> np.ndarray:
    """`(round(seconds * 44100),)` float32: what is heard of some notes; its loudness is the soundfont's.

    program: of General MIDI, counted from 0; drums: on its drum kit.

    Raises:
        DataNotFoundError: the font has no such instrument.
    """
    heard = np.zeros(round(seconds * RATE), dtype=np.float64)
    for note in notes:
        start = round(note.onset * RATE)
        for zone in font.zones(DRUMS if drums else 0, program, note.key, note.velocity):
            wave = _sound(font, zone, note, len(heard) - start)
            heard[start : start + len(wave)] += wave
    return heard.astype(np.float32)


def _sound(font: SoundFont, zone: Zone, note: Note, most: int) -> np.ndarray:
    """One zone of one note, at most `most` samples: the recording at its pitch, looped, under its envelope."""
    sample, values = font.sample(zone.sample), zone.values
    silent = note.length + _seconds(values["release"]) * -SILENT_DB / 100  # a release takes its time for 100 dB
    wanted = max(0, min(round(silent * RATE), most))
    root = values["root"] if values["root"] >= 0 else sample.key
    cents = (note.key - root) * values["scale"] + 100 * values["semitones"] + values["cents"] + sample.cents
    step = sample.rate / RATE * 2 ** (cents / 1200)
    first = values["start"] + 32768 * values["start_coarse"]
    last = len(sample.wave) - 1 + min(0, values["end"] + 32768 * values["end_coarse"])
    places = first + np.arange(wanted) * step
    low = sample.loop[0] + values["loop_start"] + 32768 * values["loop_start_coarse"]
    high = sample.loop[1] + values["loop_end"] + 32768 * values["loop_end_coarse"]
    if values["modes"] & 1 and 0 <= low < high <= last:
        inside = places >= high
        if values["modes"] == 3:  # looped only while the key is down
            inside &= np.arange(wanted) < note.length * RATE
        places[inside] = low + (places[inside] - low) % (high - low)
    places = places[places < last]  # a recording that ends, ends the note
    before = places.astype(np.int64)
    part = places - before
    wave = sample.wave[before] * (1 - part) + sample.wave[before + 1] * part
    wave *= _envelope(len(wave), note.length, values)
    wave = _filtered(wave, values)
    # 0.4: attenuation as synthesisers have applied it since the first, whose unit was smaller than the specification's.
    return wave * (note.velocity / 127) ** 2 * 10 ** (-0.4 * values["attenuation"] / 200)


def _filtered(wave: np.ndarray, values: dict[str, int]) -> np.ndarray:
    """Low-passed; where the second envelope moves the cutoff, by a blend of the two ends of its way."""
    closed = _lowpass(wave, values["filter"])
    if not values["filter_sweep"]:
        return closed
    time = np.arange(len(wave)) / RATE
    attack, hold, decay = (_seconds(values[f"sweep_{name}"]) for name in ("attack", "hold", "decay"))
    floor = 1 - values["sweep_sustain"] / 1000
    level = np.where(time < attack, time / attack, np.clip(1 - (time - attack - hold) / decay, floor, 1))
    return closed + level * (_lowpass(wave, values["filter"] + values["filter_sweep"]) - closed)


def _lowpass(wave: np.ndarray, cents: int) -> np.ndarray:
    """Of second order at a cutoff in absolute cents (0 is 8.176 Hz); nothing where it is above all that is heard."""
    sections = _sections(cents)
    return wave if sections is None else sosfilt(sections, wave)


@lru_cache(maxsize=512)
def _sections(cents: int) -> np.ndarray | None:
    cutoff = 8.176 * 2 ** (cents / 1200)
    return butter(2, cutoff, fs=RATE, output="sos") if cutoff < 0.4 * RATE else None


def _envelope(count: int, held: float, values: dict[str, int]) -> np.ndarray:
    """Level over time, `(count,)`: a linear attack, then lines in decibels: hold, decay to the sustain, release."""
    time = np.arange(count) / RATE
    delay, attack, hold, decay = (_seconds(values[name]) for name in ("delay", "attack", "hold", "decay"))
    floor = -max(0, min(1000, values["sustain"])) / 10  # dB
    rise = np.clip((time - delay) / attack, 0, 1)
    level = np.clip(-100 * (time - delay - attack - hold) / decay, floor, 0)  # a decay takes its time for 100 dB
    level -= np.clip((time - held) / _seconds(values["release"]), 0, 1) * 100
    return np.where(level > SILENT_DB, rise * 10 ** (level / 20), 0.0)


def _seconds(timecents: int) -> float:
    return 2 ** (timecents / 1200)

"""Short phrases of music as data: what is played, how, and which notes these are.

Notes are played on a soundfont's instruments: from keys and times to samples, the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.signal import butter, sosfilt

from pullpush.data.draws import number
from pullpush.data.music.soundfont import DRUMS, SoundFont, Zone

RATE = 44_100  # Hz in which notes are rendered
SILENT_DB = -80.0  # where a release ends
SHAPES = ("rising", "falling", "arpeggio", "melody")  # of what is played on pitched instruments; drums play a "rhythm"
TEMPI = {"slow": 0.7, "moderate": 0.4, "fast": 0.2}  # seconds a note
MODES = {"major": (0, 2, 4, 5, 7, 9, 11, 12), "minor": (0, 2, 3, 5, 7, 8, 10, 12)}  # semitones above the tonic
REGISTERS = ("low", "middle", "high")  # thirds of where an octave fits into the instrument's range
ARTICULATIONS = {"legato": 1.02, "staccato": 0.3}  # length of a note over the time to the next
ATTRIBUTES = ("tempo", "mode", "register", "articulation")  # beside the instrument and the shape
RHYTHM, UNKNOWN = "rhythm", "music"
SPREAD = 0.1  # of tempi, either way


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
    """
    mix = np.zeros(round(seconds * RATE), dtype=np.float64)
    for note in notes:
        start = round(note.onset * RATE)
        for zone in font.zones(DRUMS if drums else 0, program, note.key, note.velocity):
            wave = _sound(font, zone, note, len(mix) - start)
            mix[start : start + len(wave)] += wave
    return mix.astype(np.float32)


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


@dataclass(frozen=True)
class Phrase:
    """What is heard: an instrument by its name and attributes, "" where they do not apply or nobody knows them.

    shape: of SHAPES, "rhythm", or "music" for a recording of which no more is known; melody: number of the draw.
    """

    instrument: str
    shape: str
    tempo: str = ""
    mode: str = ""
    register: str = ""
    articulation: str = ""
    melody: int = 0

    @property
    def known(self) -> tuple[str, ...]:
        """The names of the attributes that are there."""
        return tuple(name for name in ATTRIBUTES if getattr(self, name))

    @property
    def kind(self) -> tuple[str, ...]:
        """All that captions can tell."""
        return self.instrument, self.shape, self.tempo, self.mode, self.register, self.articulation


def kinds(instrument: str, *, pitched: bool, sustained: bool) -> list[Phrase]:
    """Every kind of phrase that an instrument can play, with melody 0."""
    if not pitched:
        return [Phrase(instrument, RHYTHM, tempo) for tempo in TEMPI]
    articulations = tuple(ARTICULATIONS) if sustained else ("",)
    return [Phrase(instrument, *values) for values in product(SHAPES, TEMPI, MODES, REGISTERS, articulations)]


def notes(phrase: Phrase, seconds: float, *, keys: tuple[int, int], drums: Sequence[int] = ()) -> list[Note]:
    """The phrase's notes within `seconds`; the same for the same phrase.

    Scales and arpeggios begin again at their end; melodies begin with the tonic's triad, so that the mode is heard, and
    walk by steps of at most three degrees. keys: first and last MIDI key of a pitched instrument; drums: of a drum.

    >>> played = notes(Phrase("violin", "rising", "slow", "minor", "low"), 4.0, keys=(55, 96))
    >>> [note.key - played[0].key for note in played]
    [0, 2, 3, 5, 7]
    """
    rng = np.random.default_rng(number(phrase))
    step = TEMPI[phrase.tempo] * rng.uniform(1 - SPREAD, 1 + SPREAD)
    count = max(2, int(seconds / step))
    if drums:
        struck = rng.random(8) < 0.6
        struck[[0, 4]] = True  # the beats of a bar of eight
        hits = [i for i in range(2 * count) if struck[i % 8]]
        played = [
            Note(i * step / 2, step / 2, int(rng.choice(drums)), 110 if i % 4 == 0 else int(rng.integers(70, 95)))
            for i in hits
        ]
    else:
        place = (REGISTERS.index(phrase.register) + rng.random()) / len(REGISTERS)
        tonic = keys[0] + round(place * (keys[1] - keys[0] - 12))  # octave lies in the register's third of the range
        length = step * ARTICULATIONS.get(phrase.articulation, 0.95)
        played = [
            Note(i * step, length, tonic + MODES[phrase.mode][degree], int(rng.integers(80, 111)))
            for i, degree in enumerate(_degrees(phrase.shape, count, rng))
        ]
    return [note for note in played if note.onset < seconds - step / 4]


def _degrees(shape: str, count: int, rng: np.random.Generator) -> list[int]:
    """Degrees of the scale, 0 to 7."""
    if shape == "rising":
        return [i % 8 for i in range(count)]
    if shape == "falling":
        return [7 - i % 8 for i in range(count)]
    if shape == "arpeggio":
        return [(0, 2, 4, 7, 4, 2)[i % 6] for i in range(count)]
    degrees = rng.permutation([0, 2, 4]).tolist()
    while len(degrees) < count:
        moves = [move for move in (-3, -2, -1, 1, 2, 3) if 0 <= degrees[-1] + move <= 7]
        degrees.append(degrees[-1] + int(rng.choice(moves)))
    return degrees[:count]

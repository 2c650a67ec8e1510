"""Short phrases of music as data: what is played, how, and which notes these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from pullpush.data.draws import number
from pullpush.data.notes import Note

SHAPES = ("rising", "falling", "arpeggio", "melody")  # of what is played on pitched instruments; drums play a "rhythm"
TEMPI = {"slow": 0.7, "moderate": 0.4, "fast": 0.2}  # seconds a note
MODES = {"major": (0, 2, 4, 5, 7, 9, 11, 12), "minor": (0, 2, 3, 5, 7, 8, 10, 12)}  # semitones above the tonic
REGISTERS = ("low", "middle", "high")  # thirds of where an octave fits into the instrument's range
ARTICULATIONS = {"legato": 1.02, "staccato": 0.3}  # length of a note over the time to the next
ATTRIBUTES = ("tempo", "mode", "register", "articulation")  # beside the instrument and the shape
RHYTHM, UNKNOWN = "rhythm", "music"
SPREAD = 0.1  # of tempi, either way


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
    """Every kind of phrase that an instrument can play, with melody 0.

    >>> len(kinds("violin", pitched=True, sustained=True)), len(kinds("claves", pitched=False, sustained=False))
    (144, 3)
    """
    if not pitched:
        return [Phrase(instrument, RHYTHM, tempo) for tempo in TEMPI]
    articulations = tuple(ARTICULATIONS) if sustained else ("",)
    return [Phrase(instrument, *values) for values in product(SHAPES, TEMPI, MODES, REGISTERS, articulations)]


def notes(phrase: Phrase, seconds: float, *, keys: tuple[int, int], drums: Sequence[int] = ()) -> list[Note]:
    """The phrase's notes within `seconds`; the same for the same phrase.

    Scales and arpeggios begin again at their end; melodies begin with the tonic's triad, so that the mode is heard, and
    walk by steps of at most three degrees.

    Args:
        phrase: what is played.
        seconds: how long.
        keys: first and last MIDI key of a pitched instrument.
        drums: the keys of a drum.

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
        tonic = _tonic(phrase.register, keys, rng)
        length = step * ARTICULATIONS.get(phrase.articulation, 0.95)
        played = [
            Note(i * step, length, tonic + MODES[phrase.mode][degree], int(rng.integers(80, 111)))
            for i, degree in enumerate(_degrees(phrase.shape, count, rng))
        ]
    return [note for note in played if note.onset < seconds - step / 4]


def _tonic(register: str, keys: tuple[int, int], rng: np.random.Generator) -> int:
    """A tonic whose octave lies in the third of the range that the register names."""
    room = keys[1] - keys[0] - 12
    place = (REGISTERS.index(register) + rng.random()) / len(REGISTERS)
    return keys[0] + round(place * room)


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

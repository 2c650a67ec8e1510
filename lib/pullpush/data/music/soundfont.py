"""SoundFont 2 files (.sf2, and .sf3 with Ogg Vorbis inside): recorded notes of instruments, and how they are played.

Read after the SoundFont 2.04 specification, as far as recorded phrases need it: zones by key and velocity, tuning,
loops, both envelopes, attenuation and the low-pass filter; no modulators, vibrato, effects or panning (one channel).
Notes are played here (phrases.py), the same samples on every machine, on which stored results rest. TinySoundFont's
binding has wheels for some platforms and needs PortAudio's headers elsewhere, FluidSynth's the system's library, and
symusic 0.6.0 cannot return what it renders (0.5.9 plays other instruments than are asked for).
"""

import io
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import soundfile

from pullpush.errors import DataNotFoundError

DRUMS = 128  # the bank of drum kits, in which every key is another instrument
OGG = 0x10  # flag of a sample's type: compressed by Ogg Vorbis, as .sf3 has it
# Generators: numbers and defaults of the specification, section 8.1.3, of those that are heard here.
DEFAULTS = {
    "start": (0, 0),
    "end": (1, 0),
    "loop_start": (2, 0),
    "loop_end": (3, 0),
    "start_coarse": (4, 0),
    "filter": (8, 13500),  # absolute cents
    "filter_sweep": (11, 0),  # cents by which the second envelope opens it
    "end_coarse": (12, 0),
    "sweep_attack": (26, -12000),  # timecents
    "sweep_hold": (27, -12000),
    "sweep_decay": (28, -12000),
    "sweep_sustain": (29, 0),  # thousandths below the peak
    "delay": (33, -12000),  # timecents
    "attack": (34, -12000),
    "hold": (35, -12000),
    "decay": (36, -12000),
    "sustain": (37, 0),  # centibels below the peak
    "release": (38, -12000),
    "loop_start_coarse": (45, 0),
    "attenuation": (48, 0),  # centibels
    "loop_end_coarse": (50, 0),
    "semitones": (51, 0),
    "cents": (52, 0),
    "modes": (54, 0),
    "scale": (56, 100),  # cents a key
    "root": (58, -1),
}
KEYS, VELOCITIES, INSTRUMENT, SAMPLE = 43, 44, 41, 53
NAMES = {number: name for name, (number, _) in DEFAULTS.items()}
# Of an instrument alone: a preset does not add to offsets, modes and roots.
ABSOLUTE = {name for name in DEFAULTS if name.startswith(("start", "end", "loop"))} | {"modes", "root"}


@dataclass(frozen=True)
class Zone:
    """One recorded note and where it is used.

    keys, velocities: first and last that it serves; sample: its number; values: generators by the names of DEFAULTS.
    """

    keys: tuple[int, int]
    velocities: tuple[int, int]
    sample: int
    values: dict[str, int] = field(hash=False)


@dataclass(frozen=True)
class Sample:
    """A recorded note.

    wave: `(T,)` float32 in [-1, 1]; rate: in Hz; loop: its first sample and the one behind its last; key, cents: the
    MIDI key it was played at, and what corrects it.
    """

    wave: np.ndarray = field(repr=False)
    rate: int
    loop: tuple[int, int]
    key: int
    cents: int


class SoundFont:
    """A file's presets and recordings, read as they are asked for."""

    def __init__(self, path: str | Path) -> None:
        try:
            self._chunks = _chunks(Path(path).read_bytes())
            self._headers = list(struct.iter_unpack("<20s5IBbHH", self._chunks["shdr"]))[:-1]
            self.presets = self._read_presets()
        except (OSError, struct.error, KeyError, IndexError) as error:
            raise DataNotFoundError(
                f"{path} is no complete SoundFont ({error}): remove it to fetch it again"
            ) from error
        self.sample = lru_cache(maxsize=256)(self._sample)

    def zones(self, bank: int, program: int, key: int, velocity: int) -> list[Zone]:
        """What sounds when a key is struck: several zones where it was recorded in stereo, or layered."""
        if (bank, program) not in self.presets:
            known = sorted(number for other, number in self.presets if other == bank)
            raise DataNotFoundError(f"the soundfont has no preset {program} in bank {bank}, only {known}")
        zones = self.presets[bank, program]
        found = [z for z in zones if z.keys[0] <= key <= z.keys[1] and z.velocities[0] <= velocity <= z.velocities[1]]
        return [zone for zone in found if not self._headers[zone.sample][9] & 0x8000]  # not those in a chip's memory

    def _sample(self, number: int) -> Sample:
        _, start, end, loop_start, loop_end, rate, key, cents, _, kind = self._headers[number]
        data = self._chunks["smpl"]
        if kind & OGG:  # places are bytes, and loops count from the start of the recording
            wave, rate = soundfile.read(io.BytesIO(data[start:end]), dtype="float32")
            return Sample(wave.reshape(len(wave), -1)[:, 0], rate, (loop_start, loop_end), key, cents)
        wave = np.frombuffer(data, "<i2", end - start, 2 * start).astype(np.float32) / 32768
        return Sample(wave, rate, (loop_start - start, loop_end - start), key, cents)

    def _read_presets(self) -> dict[tuple[int, int], list[Zone]]:
        """(bank, program) → zones."""
        instruments = _layers(self._chunks, "inst", "<20sH", "ibag", "igen")
        presets = {}
        headers = list(struct.iter_unpack("<20s3H3I", self._chunks["phdr"]))
        for header, layers in zip(headers, _layers(self._chunks, "phdr", "<20s3H3I", "pbag", "pgen"), strict=False):
            zones = [
                zone
                for layer in _merged(layers, INSTRUMENT)
                for inner in _merged(instruments[layer[INSTRUMENT]], SAMPLE)
                if (zone := _zone(layer, inner)) is not None
            ]
            presets[header[2], header[1]] = zones
        return presets


Layer = dict[int, int]  # generator → its 16 bits


def _chunks(data: bytes) -> dict[str, bytes]:
    """The chunks of a RIFF file of SoundFonts by their names, which are all different."""
    if data[:4] != b"RIFF" or data[8:12] != b"sfbk":
        raise KeyError("it does not begin as a SoundFont")
    found: dict[str, bytes] = {}
    lists = [(12, len(data))]
    while lists:
        place, end = lists.pop()
        while place + 8 <= end:
            name, size = data[place : place + 4].decode("latin1"), struct.unpack_from("<I", data, place + 4)[0]
            if name == "LIST":
                lists.append((place + 12, place + 8 + size))
            else:
                found[name] = data[place + 8 : place + 8 + size]
            place += 8 + size
            if size % 2 and data[place : place + 4] != b"LIST":  # some .sf3 files lack the byte that evens a size
                place += 1
    return found


def _layers(chunks: dict[str, bytes], headers: str, form: str, bags: str, generators: str) -> list[list[Layer]]:
    """The generators of each bag of each header; the last header only ends the one before it."""
    firsts = [row[1] if headers == "inst" else row[3] for row in struct.iter_unpack(form, chunks[headers])]
    bag = [first for first, _ in struct.iter_unpack("<HH", chunks[bags])]
    rows = list(struct.iter_unpack("<HH", chunks[generators]))
    return [
        [dict(rows[bag[number] : bag[number + 1]]) for number in range(first, last)] for first, last in pairwise(firsts)
    ]


def _merged(layers: list[Layer], last: int) -> list[Layer]:
    """Layers that end in an instrument or a sample, with what the first, global one says where they are silent."""
    common: Layer = {} if not layers or last in layers[0] else layers[0]
    return [{**common, **layer} for layer in layers if last in layer]


def _zone(preset: Layer, instrument: Layer) -> Zone | None:
    """A preset's layer over an instrument's: ranges meet, values add up. None where the ranges do not meet."""
    spans = [_meet(preset.get(number), instrument.get(number)) for number in (KEYS, VELOCITIES)]
    if any(low > high for low, high in spans):
        return None
    values = {name: default for name, (_, default) in DEFAULTS.items()}
    values |= {NAMES[number]: _signed(value) for number, value in instrument.items() if number in NAMES}
    for number, value in preset.items():
        if (name := NAMES.get(number)) and name not in ABSOLUTE:
            values[name] += _signed(value)
    return Zone(spans[0], spans[1], instrument[SAMPLE], values)


def _meet(one: int | None, other: int | None) -> tuple[int, int]:
    spans = [(value & 0xFF, value >> 8) for value in (one, other) if value is not None]
    return max([0, *(low for low, _ in spans)]), min([127, *(high for _, high in spans)])


def _signed(value: int) -> int:
    return value - 0x10000 if value >= 0x8000 else value

"""Probes of music: which phrases there are, which notes, how soundfonts play them, and what captions tell of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pullpush.data.banks.music import _phrases
from pullpush.data.language.grammar import dative_of
from pullpush.data.languages import LANGUAGES
from pullpush.data.music.fonts import _loudest, sound
from pullpush.data.music.instruments import Instrument, event_of, load_instruments, music_captions, music_prompts
from pullpush.data.music.phrases import RATE, SHAPES, Note, Phrase, kinds, notes, play
from pullpush.data.music.soundfont import DEFAULTS, Sample, SoundFont, Zone
from pullpush.data.music.world import MusicConfig, _deal, never_named, owned
from pullpush.data.scenes.bank import MAX_SECONDS
from pullpush.golden import small_font
from pullpush.golden.compare import Values
from pullpush.golden.data_scenes import looks
from pullpush.golden.inputs import numbers

VIOLIN = Instrument("violin", "bowed", 40, (55, 96), sustained=True)
DRUM = Instrument("drum", "drums", drums=(36, 38))


def music() -> Values:
    """Kinds of phrases, how they are dealt out, their notes, and their captions in eight languages."""
    told = [Phrase("violin", shape, "slow", "minor", "high", "legato", melody) for melody, shape in enumerate(SHAPES)]
    beat = Phrase("claves", "rhythm", "fast", melody=4)
    deck, beats = kinds("violin", pitched=True, sustained=True), kinds("claves", pitched=False, sustained=False)
    known = load_instruments()[:6]
    named = event_of(known[2]).phrases
    found: dict[str, Any] = {
        "kinds": [deck[7].kind, deck[-1].kind, *(kind.kind for kind in beats)],
        "owned": [[owned(kind, split, 1) for kind in deck[::9]] for split in ("train", "valid", "test")],
        "drums": owned(beat, "valid", 1),
        "dealt": [[*phrase.kind, phrase.melody] for phrase in _deal("test", [0, 7, 44], 8, 3, split="test")],
        "never named": sorted(never_named(MusicConfig(seed=2))),
        "bank": [[phrase.kind for phrase in _phrases(item)] for item in load_instruments()[::15]],
        "dative": [dative_of(noun) for noun in ("eine große Trommel", "ein Horn", "a horn")],
        "event": [[named[code].clauses[0].verb, named[code].nouns[0], named[code].label] for code in LANGUAGES],
    }
    for phrase in told:
        found[f"notes {phrase.shape}"] = _plain(notes(phrase, 3.0, keys=(55, 96)))
    found["notes rhythm"] = _plain(notes(beat, 1.5, keys=(0, 127), drums=(75, 76)))
    for code in LANGUAGES:
        found[f"captions {code}"] = music_captions(told[1], language=code, n=3, seed=5)
        found[f"aligned {code}"] = music_captions(told[3], language=code, n=2, seed=5, aligned=True)
        found[f"prompts {code}"] = music_prompts(known[:2], code)
    found["asked"] = [*music_prompts(known, "eng", "{label}?"), *music_prompts(known[:2], "ita")]
    return found


def soundfont() -> Values:
    """Notes of a soundfont of one sine, with what its zones may ask for, and phrases as it plays them."""
    with tempfile.TemporaryDirectory() as folder:
        font = SoundFont(small_font.write(Path(folder) / "sine.sf2", partials=(1.0, 0.5), programs=41))
    zone = font.zones(0, 40, 60, 100)[0]
    found: dict[str, Any] = {
        "zone": [zone.keys, zone.velocities, zone.sample, list(zone.values.items())],
        "sample": looks(font.sample(0).wave),
        "facts": [font.sample(0).rate, font.sample(0).loop, font.sample(0).key, font.sample(0).cents],
        "played": looks(play(font, [Note(0.0, 0.1, 60), Note(0.05, 0.1, 81, 40)], 0.3, program=40)),
        "drums": looks(play(font, [Note(0.0, 0.1, 38)], 0.2, drums=True)),
    }
    for name, values in ZONES.items():
        played = play(_Font(values), [Note(0.01, 0.06, 64, 90)], 0.15)  # pyrefly: ignore[bad-argument-type]
        found[f"zone {name}"] = looks(played)
    phrase = Phrase("violin", "arpeggio", "fast", "major", "low", "legato", 3)
    found["phrase"] = looks(sound(phrase, VIOLIN, font, seconds=0.8, sample_rate=16_000))
    found["rhythm"] = looks(sound(Phrase("drum", "rhythm", "fast"), DRUM, font, seconds=0.5, sample_rate=22_050))
    waves = numbers(900, seed=5)
    found["loudest"], found["whole"] = looks(_loudest(waves, 300)), len(_loudest(waves, 1000))
    found["seconds"] = MAX_SECONDS
    return found


ZONES: dict[str, dict[str, int]] = {
    "plain": {},
    "looped": {"modes": 1, "sustain": 100, "decay": -4000, "attack": -6000},
    "released": {"modes": 3, "release": -3000, "hold": -5000, "delay": -7000},
    "tuned": {"root": 60, "cents": -30, "semitones": 2, "scale": 50, "attenuation": 60},
    "swept": {"filter": 8000, "filter_sweep": 2400, "sweep_attack": -5000, "sweep_decay": -4000, "sweep_sustain": 400},
    "moved": {"modes": 1, "start": 40, "end": -300, "loop_start": 20, "loop_end": -35},
}


class _Font:
    """A soundfont of one zone."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = {name: default for name, (_, default) in DEFAULTS.items()} | values

    def zones(self, bank: int, program: int, key: int, velocity: int) -> list[Zone]:
        return [Zone((0, 127), (0, 127), 0, self.values)]

    def sample(self, number: int) -> Sample:
        wave = np.sin(np.arange(4000) * 2 * np.pi / 50).astype(np.float32)
        return Sample(wave, RATE // 2, (1000, 1500), 69, -4)


def _plain(played: list[Note]) -> list[list[float]]:
    return [[note.onset, note.length, note.key, note.velocity] for note in played]

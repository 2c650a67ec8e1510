"""Soundfonts and real recordings of instruments, from packages of Debian: phrases as they sound."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
import torch
from torchaudio.functional import resample

from pullpush.data.audio import check_audible, load_audio, loudest, normalise_rms
from pullpush.data.music.instruments import Instrument
from pullpush.data.music.phrases import RATE, Phrase, notes, play
from pullpush.data.music.soundfont import SoundFont
from pullpush.data.recordings.debian import Package, trees
from pullpush.data.recordings.takes import SOURCES as TAKES, Source, member
from pullpush.errors import unknown

FADE = 0.05  # seconds in which a phrase ends
SUFFIXES = (".sf2", ".sf3")

FONTS: Mapping[str, tuple[Package, str]] = {  # the package, and the font's path in it
    "fluid": (
        Package(
            "fluidr3mono-gm-soundfont",
            "2.315-7",
            "4098301bf29f4253c2f5799a844f42dd4aa733d91a210071ad16d7757dea51d6",
            18.7,
            ("*.sf3",),
        ),
        "usr/share/fluidr3mono-gm-soundfont/FluidR3Mono_GM.sf3",
    ),
    "timgm": (
        Package(
            "timgm6mb-soundfont",
            "1.3-5",
            "034abdfb296d9353433513dad5dbdcab46425ee6008fc02fe7039b46e75edc54",
            5.4,
            ("*.sf2",),
        ),
        "usr/share/sounds/sf2/TimGM6mb.sf2",
    ),
}
REAL: Mapping[str, Source] = {"gcompris": TAKES["gcompris"]}


def font_path(name: str) -> Path:
    """A soundfont by its name, fetched when first asked for; a path to one of your own stays what it is."""
    if name.endswith(SUFFIXES):
        return Path(name).expanduser()
    if name not in FONTS:
        raise unknown("soundfont", name, FONTS)
    package, path = FONTS[name]
    return trees([package])[0] / path


@lru_cache(maxsize=2)
def load_font(path: Path) -> SoundFont:
    """A soundfont, kept while phrases are rendered."""
    return SoundFont(path)


def sound(phrase: Phrase, instrument: Instrument, font: SoundFont, *, seconds: float, sample_rate: int) -> np.ndarray:
    """A phrase as a font plays it: `(round(seconds * sample_rate),)` float32 at -20 dB RMS, faded at its end."""
    played = notes(phrase, seconds, keys=instrument.keys, drums=instrument.drums)
    wave = play(font, played, seconds, program=instrument.program, drums=bool(instrument.drums))
    fade = round(FADE * RATE)
    wave[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
    heard = check_audible(resample(torch.from_numpy(wave), RATE, sample_rate), f"{phrase}")
    return normalise_rms(heard)[: round(seconds * sample_rate)].numpy()


def real_sounds(takes: Sequence[str], *, seconds: float, sample_rate: int) -> list[np.ndarray]:
    """Real recordings, "package/path" or "package/path:member", each the loudest part of at most `seconds`."""
    names = sorted({take.partition("/")[0] for take in takes})
    folders = dict(zip(names, trees([REAL[name].package for name in names]), strict=True))
    waves = []
    for take in takes:
        name, _, place = take.partition("/")
        path, _, inside = place.partition(":")
        file = folders[name] / REAL[name].folder / path
        if inside:
            samples, rate = soundfile.read(io.BytesIO(member(file, inside)), dtype="float32", always_2d=True)
            wave = resample(torch.from_numpy(samples).mean(dim=1), rate, sample_rate)
        else:
            wave = load_audio(file, sample_rate=sample_rate)
        waves.append(normalise_rms(loudest(check_audible(wave, take), round(seconds * sample_rate))).numpy())
    return waves

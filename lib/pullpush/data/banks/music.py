"""Instruments as events of scenes: each in two short phrases from each of two soundfonts."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import soundfile

from pullpush.cache import cached_dir, content_key
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import MAX_SECONDS, BankCard, EventClips, decoded
from pullpush.data.draws import number
from pullpush.data.language.vocabulary import Event
from pullpush.data.music.fonts import FONTS as PACKAGES, font_path, load_font, sound
from pullpush.data.music.instruments import Instrument, event_of, load_instruments
from pullpush.data.music.phrases import Phrase, kinds
from pullpush.golden import versions

FONTS = ("fluid", "timgm")
TAKES = 2  # phrases from each font


def read(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """All instruments, sorted by name; of each the phrases of the first font, then those of the second."""
    instruments = sorted(load_instruments(), key=lambda item: item.name)
    paths = {font: font_path(font) for font in FONTS}
    takes = [list(product(FONTS, _phrases(item))) for item in instruments]

    def build(folder: Path) -> None:
        for item, pairs in zip(instruments, takes, strict=True):
            for row, (font, phrase) in enumerate(pairs):
                wave = sound(phrase, item, load_font(paths[font]), seconds=MAX_SECONDS, sample_rate=SAMPLE_RATE)
                soundfile.write(folder / f"{item.name}-{row}.wav", wave, SAMPLE_RATE)

    sizes = [path.stat().st_size for path in paths.values()]
    shaped = [versions("data/music", "data/soundfont"), FONTS, TAKES, MAX_SECONDS, sizes]
    folder = cached_dir("instruments", content_key(shaped), build)
    files = [
        [folder / f"{item.name}-{row}.wav" for row in range(len(pairs))]
        for item, pairs in zip(instruments, takes, strict=True)
    ]
    return tuple(event_of(item) for item in instruments), decoded(files)


def _phrases(item: Instrument) -> list[Phrase]:
    """`TAKES` kinds of phrases, drawn by a hash."""
    every = kinds(item.name, pitched=not item.drums, sustained=item.sustained)
    return sorted(every, key=lambda kind: number(("bank", kind.kind)))[:TAKES]


def fetch_fonts() -> Path:
    """Both soundfonts; the folder of the first."""
    first, *_ = [font_path(font) for font in FONTS]
    return first.parent


CARD = BankCard(
    name="music",
    make=read,
    fetch=fetch_fonts,
    megabytes=sum(PACKAGES[font][0].megabytes for font in FONTS),
    title="Instruments",
    about="47 instruments and drums, each in four short phrases from two soundfonts.",
    source="the soundfonts FluidR3Mono and TimGM6mb, played by music/phrases.py",
    authors="Frank Wen, Michael Cowgill (FluidR3Mono); Tim Brechbill, David Bolton (TimGM6mb); of real recordings: "
    "Sylvain Dechy, Jérome Blanchard, Julie Jules, Chloé Tuvuku (GCompris)",
    licence="MIT (FluidR3Mono), GPL-2.0 (TimGM6mb); GPL-3.0-or-later (GCompris)",
    version="Debian: fluidr3mono-gm-soundfont 2.315, timgm6mb-soundfont 1.3",
)

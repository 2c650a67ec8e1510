"""Instruments: how they are played, where recordings of them are, and what captions say of phrases played on them.

The table is `music.yaml`. Phrases are told in the eight languages of the ATRI paper, retold (each language chooses what
it tells) or aligned (translations of each other).
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from torchaudio.functional import resample

from pullpush.data.audio import check_audible, load_audio, loudest, normalise_rms
from pullpush.data.clips import Columns
from pullpush.data.draws import number
from pullpush.data.language.grammar import dative_of, distinct, load_grammar
from pullpush.data.language.vocabulary import Event, Phrases, parse_clause
from pullpush.data.languages import read_table
from pullpush.data.music.phrases import ATTRIBUTES, RATE, Phrase, notes, play
from pullpush.data.music.soundfont import SoundFont
from pullpush.data.recordings.debian import packages, tree, trees
from pullpush.data.recordings.tuxpaint import SOURCES as TAKES, member
from pullpush.errors import check_known, looked_up

TABLE = Path(__file__).with_name("music.yaml")
BAR = "|"  # between the article and the label
P_TELL = 0.8  # how often each attribute of a phrase is told
PATIENCE = 100  # draws in a row that bring nothing new, before the ways to tell a phrase count as exhausted


@dataclass(frozen=True)
class Instrument:
    """One instrument.

    family: those that share it are near misses of each other; program, keys: of General MIDI, its first and last key;
    drums: or its keys on a drum kit; sustained: whether its notes last as long as they are held; names: language →
    "a |violin"; recordings: real ones, "package/path" or "package/path:member".
    """

    name: str
    family: str
    program: int = 0
    keys: tuple[int, int] = (0, 127)
    drums: tuple[int, ...] = ()
    sustained: bool = False
    names: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    recordings: tuple[str, ...] = ()

    def called(self, language: str) -> str:
        """With its article: "a violin"."""
        return self.names[language].replace(BAR, "")

    def label(self, language: str) -> str:
        """Without: "violin"."""
        return self.names[language].rpartition(BAR)[2]


@cache
def load_instruments() -> tuple[Instrument, ...]:
    """All instruments, in the order of the table."""
    table = read_table(TABLE)
    found = []
    for name, entry in table["instruments"].items():
        kind: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in entry["kind"].items()}
        recordings = tuple(table["recordings"].get(name, ()))
        found.append(Instrument(name, names=entry["names"], recordings=recordings, **kind))
    return tuple(found)


@cache
def load_words() -> Mapping[str, Mapping[str, Any]]:
    """Language → the parts of captions."""
    return read_table(TABLE)["words"]


def event_of(instrument: Instrument) -> Event:
    """The instrument as an event of scenes: in the languages of the table."""
    phrases = {}
    for language, words in load_words().items():
        name = instrument.called(language)
        clauses = tuple(parse_clause(text.format(name=name)) for text in words["event"]["clauses"])
        noun = words["event"]["noun"].format(name=name, dative=dative_of(name))
        phrases[language] = Phrases(clauses, (noun,), instrument.label(language))
    return Event(instrument.name, instrument.family, instrument.recordings, phrases)


def music_captions(phrase: Phrase, *, language: str, n: int = 5, seed: int = 0, aligned: bool = False) -> list[str]:
    """`n` captions of a phrase, all different as long as there are that many ways to tell it.

    aligned: what is told, and in which form, is drawn for all languages at once.

    >>> phrase = Phrase("violin", "rising", "slow", "minor", "high", "legato")
    >>> music_captions(phrase, language="eng", n=1)
    ['In this recording, a violin plays a rising scale in a minor key, legato.']
    """
    check_known("language of music", language, load_words())
    rng = np.random.default_rng(number((phrase, seed, "" if aligned else language), size=16))
    forms = rng.permutation(len(load_words()[language]["forms"])).tolist()

    def draw(attempt: int) -> tuple[tuple[int, tuple[str, ...]], str]:
        coins = dict(zip(ATTRIBUTES, (rng.random(len(ATTRIBUTES)) < P_TELL).tolist(), strict=True))
        choice = forms[attempt % len(forms)], tuple(name for name in phrase.known if coins[name])
        return choice, _tell(phrase, *choice, language)

    return distinct(draw, n, patience=PATIENCE)


def write_captions(each: int, seed: int, aligned: bool, columns: Columns, language: str) -> list[list[str]]:
    """`each` captions of every phrase in one language; see `music_captions`."""
    return [
        music_captions(phrase, language=language, n=each, seed=seed, aligned=aligned) for phrase in columns["phrase"]
    ]


def _tell(phrase: Phrase, form: int, named: Sequence[str], language: str) -> str:
    """One caption; shapes are always told, since a sentence needs its object."""
    words = load_words()[language]
    instrument = next(item for item in load_instruments() if item.name == phrase.instrument)
    parts = {name: words[name][getattr(phrase, name)] if name in named else "" for name in ATTRIBUTES}
    text = words["forms"][form].format(
        name=instrument.called(language), label=instrument.label(language), shape=words["shape"][phrase.shape], **parts
    )
    text = load_grammar(language).contract(text)
    return text[0].upper() + text[1:] + words["end"]


FADE = 0.05  # seconds in which a phrase ends
SUFFIXES = (".sf2", ".sf3")

FONTS = {"fluid": packages()["fluidr3mono-gm-soundfont"], "timgm": packages()["timgm6mb-soundfont"]}
REAL = {"gcompris": TAKES["gcompris"]}


def font_path(name: str) -> Path:
    """A soundfont by its name, fetched when first asked for; a path to one of your own stays what it is."""
    if name.endswith(SUFFIXES):
        return Path(name).expanduser()
    package = looked_up("soundfont", name, FONTS)
    return tree(package) / package.place


@lru_cache(maxsize=2)
def load_font(path: Path) -> SoundFont:
    return SoundFont(path)


def sound(phrase: Phrase, instrument: Instrument, font: SoundFont, *, seconds: float, sample_rate: int) -> np.ndarray:
    """A phrase as a font plays it: `(round(seconds * sample_rate),)` float32 at -20 dB RMS, faded at its end."""
    played = notes(phrase, seconds, keys=instrument.keys, drums=instrument.drums)
    wave = play(font, played, seconds, program=instrument.program, drums=bool(instrument.drums))
    fade = round(FADE * RATE)
    wave[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
    resampled = check_audible(resample(torch.from_numpy(wave), RATE, sample_rate), f"{phrase}")
    return normalise_rms(resampled)[: round(seconds * sample_rate)].numpy()


def real_sounds(takes: Sequence[str], *, seconds: float, sample_rate: int) -> list[np.ndarray]:
    """Real recordings, "package/path" or "package/path:member", each the loudest part of at most `seconds`."""
    names = sorted({take.partition("/")[0] for take in takes})
    folders = dict(zip(names, trees([REAL[name] for name in names]), strict=True))
    waves = []
    for take in takes:
        name, _, place = take.partition("/")
        path, _, inside = place.partition(":")
        file = folders[name] / REAL[name].place / path
        if inside:
            samples, rate = soundfile.read(io.BytesIO(member(file, inside)), dtype="float32", always_2d=True)
            wave = resample(torch.from_numpy(samples).mean(dim=1), rate, sample_rate)
        else:
            wave = load_audio(file, sample_rate=sample_rate)
        waves.append(normalise_rms(loudest(check_audible(wave, take), round(seconds * sample_rate))).numpy())
    return waves

"""Banks of recordings: Tux Paint's sound effects, further takes of them, instruments, and folders of your own."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import soundfile

from pullpush.cache import cached_dir, content_key, home
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import MAX_SECONDS, BankCard, EventClips, decoded
from pullpush.data.draws import number
from pullpush.data.language.grammar import indefinite
from pullpush.data.language.vocabulary import Clause, Event, Phrases, load_events
from pullpush.data.music.instruments import (
    FONTS as PACKAGES,
    Instrument,
    event_of,
    font_path,
    load_font,
    load_instruments,
    sound,
)
from pullpush.data.music.phrases import Phrase, kinds
from pullpush.data.recordings import debian, tuxpaint
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions

FONTS = ("fluid", "timgm")
TAKES = 2  # phrases from each font


def instruments(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """All instruments, sorted by name; of each the phrases of the first font, then those of the second."""
    known = sorted(load_instruments(), key=lambda item: item.name)
    paths = {font: font_path(font) for font in FONTS}
    played = [list(product(FONTS, _phrases(item))) for item in known]

    def build(folder: Path) -> None:
        for item, pairs in zip(known, played, strict=True):
            for row, (font, phrase) in enumerate(pairs):
                wave = sound(phrase, item, load_font(paths[font]), seconds=MAX_SECONDS, sample_rate=SAMPLE_RATE)
                soundfile.write(folder / f"{item.name}-{row}.wav", wave, SAMPLE_RATE)

    sizes = [path.stat().st_size for path in paths.values()]
    shaped = [versions("data/music", "data/soundfont"), FONTS, TAKES, MAX_SECONDS, sizes]
    folder = cached_dir("instruments", content_key(shaped), build)
    files = [
        [folder / f"{item.name}-{row}.wav" for row in range(len(pairs))]
        for item, pairs in zip(known, played, strict=True)
    ]
    return tuple(event_of(item) for item in known), decoded(files)


def _phrases(item: Instrument) -> list[Phrase]:
    """`TAKES` kinds of phrases, drawn by a hash."""
    every = kinds(item.name, pitched=not item.drums, sustained=item.sustained)
    return sorted(every, key=lambda kind: number(("bank", kind.kind)))[:TAKES]


def fetch_fonts() -> Path:
    """Both soundfonts; the folder of the first."""
    first, *_ = [font_path(font) for font in FONTS]
    return first.parent


SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".caf", ".au")


def folder(path: str) -> tuple[tuple[Event, ...], EventClips]:
    """One event for each subfolder that holds recordings, called by its name: in English only."""
    root = Path(path).expanduser()
    if not path or not root.is_dir():
        raise DataNotFoundError(f"no folder {path!r}: a bank of your own is 'folder:' and a path to a folder")
    groups = {
        place.name: sorted(file for file in place.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
        for place in sorted(root.iterdir())
        if place.is_dir() and not place.name.startswith(".")
    }
    nameless = [name for name in groups if name.encode("utf-8", "replace").decode() != (name.strip() and name)]
    if nameless:
        raise DataNotFoundError(f"{root} has the folder {nameless[0]!r}, which names no sound: rename it, in UTF-8")
    empty = [name for name, files in groups.items() if not files]
    if not groups or empty:
        raise DataNotFoundError(
            f"{root / empty[0] if empty else root} holds no {'recordings' if empty else 'subfolders'}: expected one "
            f"subfolder per kind of sound with {', '.join(SUFFIXES)} files in it, such as {root}/dog_bark/1.wav"
        )
    events = tuple(Event(name, name, (), {"eng": english_phrases(name)}) for name in groups)
    first: dict[str, str] = {}
    for event in events:
        label = event.phrases["eng"].label
        if (other := first.setdefault(label, event.name)) != event.name:
            raise DataNotFoundError(
                f"{root}: {other!r} and {event.name!r} are both told as {label!r}: join these folders"
            )
    return events, decoded(list(groups.values()))


def english_phrases(name: str) -> Phrases:
    """`dog_bark` → "a dog bark sound | is heard" …

    >>> english_phrases("dog_bark").nouns, english_phrases("one").nouns
    (('a dog bark sound',), ('a one sound',))
    """
    label = " ".join(name.replace("_", " ").replace("-", " ").replace("|", " ").split()).lower()
    sound = indefinite(f"{label} sound")
    return Phrases((Clause(sound, "is heard"), Clause(sound, "can be heard")), (sound,), label)


def stamps(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """The events of `events.yaml` with their recordings, fetched where they are not on disk."""
    events, place = load_events(), tuxpaint.fetch()
    return events, decoded([[tuxpaint.recording(place, stamp) for stamp in event.recordings] for event in events])


def further(_: str) -> tuple[tuple[Event, ...], EventClips]:
    """Those of Tux Paint's events that `takes.yaml` has further recordings of, with these alone."""
    known, files = tuxpaint.load_takes(), tuxpaint.fetch_takes()
    events = tuple(replace(event, recordings=known[event.name]) for event in load_events() if event.name in known)
    return events, decoded([[files[take] for take in event.recordings] for event in events])


def gather() -> Path:
    """Fetch the packages that further takes are in; the folder that those lie in."""
    tuxpaint.fetch_takes()
    return home() / debian.KIND


CARDS = (
    BankCard(
        name="folder",
        make=folder,
        title="A folder",
        about="Recordings of your own in one subfolder for each kind of sound, told in English: folder:/path.",
        source="the reader",
        categories=False,
    ),
    BankCard(
        name="music",
        make=instruments,
        fetch=fetch_fonts,
        megabytes=sum(PACKAGES[font].megabytes for font in FONTS),
        title="Instruments",
        about="47 instruments and drums, each in four short phrases from two soundfonts.",
        source="the soundfonts FluidR3Mono and TimGM6mb, played by music/phrases.py",
        authors="Frank Wen, Michael Cowgill (FluidR3Mono); Tim Brechbill, David Bolton (TimGM6mb); of real recordings: "
        "Sylvain Dechy, Jérome Blanchard, Julie Jules, Chloé Tuvuku (GCompris)",
        licence="MIT (FluidR3Mono), GPL-2.0 (TimGM6mb); GPL-3.0-or-later (GCompris)",
        version="Debian: fluidr3mono-gm-soundfont 2.315, timgm6mb-soundfont 1.3",
    ),
    BankCard(
        name="takes",
        make=further,
        title="Further takes",
        about="20 events of Tux Paint in 31 further recordings: known sounds, never heard in training.",
        source="GCompris, Scratch, OpenSFX, Minetest's home decor and the freedesktop sound theme",
        authors="the authors of GCompris, Lionel Allorge, the MIT Media Lab, the authors of OpenSFX (Jarred Gib, "
        "dobroide, l0calh05t, David R Barnes; edited by Wuzzy), Vanessa Ezekowitz, horsthorstensen",
        licence="GPL-3.0-or-later and Free Art (GCompris), CC BY-SA 3.0 (Scratch, OpenSFX, freedesktop), CC BY-SA 4.0 "
        "(home decor)",
        version="Debian: gcompris-qt-data 3.1, scratch 1.4.0.6, openttd-opensfx 1.0.3, minetest-mod-homedecor "
        "20210327.1, sound-theme-freedesktop 0.8",
        fetch=gather,
        megabytes=sum(source.megabytes for source in tuxpaint.SOURCES.values()),
    ),
    BankCard(
        name="tuxpaint",
        make=stamps,
        title="Tux Paint",
        about="82 events in 89 recordings: animals, instruments, tools, toys and vehicles.",
        source="the stamps of Tux Paint, 2022-06-04",
        authors="Bill Kendrick and the authors of Tux Paint's stamps",
        licence="GPL-2.0-or-later; some recordings in the public domain",
        version="2022.06.04 (Debian: tuxpaint-stamps-default)",
        fetch=tuxpaint.fetch,
        megabytes=tuxpaint.PACKAGE.megabytes,
    ),
)

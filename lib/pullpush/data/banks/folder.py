"""Recordings of your own, one subfolder for each kind of sound: `folder:/path`."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.language.grammar import indefinite
from pullpush.data.language.vocabulary import Clause, Event, Phrases
from pullpush.data.scenes.bank import BankCard, EventClips, decoded
from pullpush.errors import DataNotFoundError

SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".mp3", ".aif", ".aiff")


def read(path: str) -> tuple[tuple[Event, ...], EventClips]:
    """One event for each subfolder that holds recordings, called by its name: in English only."""
    root = Path(path).expanduser()
    if not path or not root.is_dir():
        raise DataNotFoundError(f"no folder {path!r}: a bank of your own is 'folder:' and a path to a folder")
    groups = {
        folder.name: sorted(file for file in folder.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    }
    empty = [name for name, files in groups.items() if not files]
    if not groups or empty:
        raise DataNotFoundError(
            f"{root / empty[0] if empty else root} holds no {'recordings' if empty else 'subfolders'}: expected one "
            f"subfolder per kind of sound with {', '.join(SUFFIXES)} files in it, such as {root}/dog_bark/1.wav"
        )
    events = tuple(Event(name, name, (), {"eng": english_phrases(name)}) for name in groups)
    return events, decoded(list(groups.values()))


def english_phrases(name: str) -> Phrases:
    """`dog_bark` → "a dog bark sound | is heard" …

    >>> english_phrases("dog_bark").nouns, english_phrases("one").nouns
    (('a dog bark sound',), ('a one sound',))
    """
    label = " ".join(name.replace("_", " ").replace("-", " ").replace("|", " ").split()).lower()
    sound = indefinite(f"{label} sound")
    return Phrases((Clause(sound, "is heard"), Clause(sound, "can be heard")), (sound,), label)


CARD = BankCard(
    name="folder",
    make=read,
    title="A folder",
    about="Recordings of your own in one subfolder for each kind of sound, told in English: folder:/path.",
    source="the reader",
    categories=False,
)

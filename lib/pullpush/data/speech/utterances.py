"""Recordings of people who speak, with what they say: what the sources `keywords`, `letters` and `prompts` share.

Each of them is some packages of Debian, whose own tables say which file holds which word. What a table names without a
recording, and recordings without a text, are left out, counted and named.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from pullpush.cache import cached_dir, content_key
from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.data.clips import Columns, StoredClips
from pullpush.data.draws import share
from pullpush.data.recordings import debian
from pullpush.data.recordings.registry import DatasetCard, Listing
from pullpush.errors import AudioError, DataNotFoundError, few, unknown
from pullpush.progress import tell

VALID, TEST = 0.1, 0.2  # shares of the texts, where a source is split


class Utterance(NamedTuple):
    """One recording.

    language: ISO 639-3; voice: who speaks, as far as that is known, else which recordings it is one of; kind: "word",
    "letter", "syllable", "number", "code word" or "sentence"; key: what is the same in all languages; text: what is
    said.
    """

    path: Path
    language: str
    voice: str
    kind: str
    key: str
    text: str


class Spoken(NamedTuple):
    """What a source holds.

    unspoken: texts without a recording; unwritten: recordings without a text; by names that the source has for them.
    """

    utterances: list[Utterance]
    unspoken: list[str]
    unwritten: list[str]


def normalised(text: str) -> str:
    """What makes two texts the same: capital letters and signs do not count, accents do.

    >>> normalised("Aujourd’hui !") == normalised("aujourd'hui")
    True
    """
    text = unicodedata.normalize("NFC", text).replace("’", "'").casefold()
    return " ".join(re.sub(r"[^\w'@#*+=/$&%-]+", " ", text).split()) or text


def report(title: str, spoken: Spoken) -> str:
    """One sentence: how many recordings there are, and what is left out.

    >>> report("Words", Spoken([], ["ind/ball"], []))
    'Words: 0 recordings in 0 languages; left out: texts without a recording 1 (ind/ball), recordings without a text 0'
    """
    unspoken, unwritten = (f"{len(names)}{f' ({few(names)})' if names else ''}" for names in spoken[1:])
    return (
        f"{title}: {len(spoken.utterances):,} recordings in {len({each.language for each in spoken.utterances})} "
        f"languages; left out: texts without a recording {unspoken}, recordings without a text {unwritten}"
    )


def decoded(kind: str, key: str, paths: Sequence[Path], longest: float | None, sample_rate: int) -> Path:
    """The folder of the cache that holds recordings (see store.py), each as `wave_of` makes it."""

    def build(folder: Path) -> None:
        waves = store.made(partial(wave_of, longest=longest, sample_rate=sample_rate), paths, "decoding speech")
        store.write(folder, waves)

    return cached_dir(kind, key, build)


def split_clips(
    table: pd.DataFrame,
    masks: Mapping[str, pd.Series],
    columns: Sequence[str],
    waveforms: store.Waveforms,
    heard: Any,
    write: Callable[[Columns, str], list[list[str]]],
    compare: Callable[[Columns, Columns], Tensor],
) -> dict[str, StoredClips]:
    """Clips by split: the rows of a table of recordings that each mask has, with some of its columns.

    heard: names what the store holds; write, compare: see `StoredClips`. `DataNotFoundError` where a split is empty.
    """
    splits = {}
    for name, is_in in masks.items():
        rows = np.flatnonzero(is_in)
        if not len(rows):
            raise DataNotFoundError(f"nothing is left for {name!r} of {len(table)} recordings: take more")
        held = {column: table[column].iloc[rows].tolist() for column in columns}
        splits[name] = StoredClips(
            name, content_key([heard, rows.tolist(), held]), waveforms, rows, held, write, compare
        )
    return splits


def wave_of(path: Path, longest: float | None, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """A recording, trimmed, normalised and cut to `longest` seconds, int16; `AudioError` if it is damaged or silent."""
    try:
        wave = trim_silence(check_audible(load_audio(path, sample_rate=sample_rate), path))
    except AudioError as error:
        raise AudioError(f"{error} (somebody who speaks: fetch the recordings again, or remove this file)") from error
    most = None if longest is None else round(longest * sample_rate)
    return store.to_int16(normalise_rms(wave[:most]).numpy())


def translations(
    texts: Mapping[str, Mapping[str, str]], columns: Columns, language: str, *, column: str = "key"
) -> list[list[str]]:
    """What each clip's key is called in a language; none where that is not known; `UnknownNameError` if none is.

    texts: language → key → text; column: of the keys.

    >>> translations({"eng": {"keywords/ear": "ear"}}, {"key": ["keywords/ear", "letters/a"]}, "eng")
    [['ear'], []]
    """
    if language not in texts:
        raise unknown("language of captions", language, texts)
    known = texts[language]
    return [[known[key]] if key in known else [] for key in columns[column]]


# ---------------------------------------------------------------- datasets of them

Read = Callable[[Path], Spoken]


def card(read: Read, packages: Sequence[debian.Package], languages: Iterable[str], **facts) -> DatasetCard:
    """The card of a source: `name` is all of it, `name:fra` one language, `name:fra,deu` several.

    Args:
        read: folder → what it holds; the folder has one folder for each package.
        packages: what it is fetched from.
        languages: of its recordings.
        facts: see `DatasetCard`; labelled: one class a text, in place of captions.
    """
    known = sorted(languages)
    make = labelled if facts.get("labelled") else captioned
    name = facts["name"]

    def of(whole: DatasetCard, argument: str) -> DatasetCard:
        wanted = tuple(part.strip() for part in argument.split(","))
        for language in wanted:
            if language not in known:
                raise unknown(f"language of {name}", language, known)
        return replace(whole, title=f"{whole.title} ({', '.join(wanted)})", make=partial(make, read, wanted))

    def fetch(root: Path) -> None:
        link(packages, root / name)
        tell(report(facts["title"], read(root / name)))

    size = sum(package.megabytes for package in packages)
    return DatasetCard(make=partial(make, read, ()), folder=name, fetch=fetch, of=of, megabytes=size, **facts)


def labelled(read: Read, languages: Sequence[str], place: Path, split: str) -> Listing:
    """Utterances with what they say as labels; they have no splits."""
    chosen = _some(read(place), languages, place)
    texts = [each.text for each in chosen]
    return Listing([each.path for each in chosen], labels=texts, classes=tuple(sorted(set(texts))))


def captioned(read: Read, languages: Sequence[str], place: Path, split: str) -> Listing:
    """Utterances with what they say as captions, split by key, the same in all languages: a fifth tests."""

    def split_of(utterance: Utterance) -> str:
        point = share(("utterance", utterance.key))
        return "test" if point < TEST else "valid" if point < TEST + VALID else "train"

    chosen = [each for each in _some(read(place), languages, place) if split_of(each) == split]
    return Listing([each.path for each in chosen], [[each.text] for each in chosen])


def link(packages: Sequence[debian.Package], place: Path) -> None:
    """Fetch packages, and link to each by its name in the folder; a package that a reader put there is left."""
    missing = [each for each in packages if not (place / each.name).exists() or (place / each.name).is_symlink()]
    place.mkdir(parents=True, exist_ok=True)
    for package, tree in zip(missing, debian.trees(missing), strict=True):
        target = place / package.name
        target.unlink(missing_ok=True)
        target.symlink_to(tree, target_is_directory=True)


def tree_in(place: Path, package: debian.Package, below: str) -> Path:
    """A folder of a package; `DataNotFoundError` if it is not there."""
    folder = place / package.name / below
    if not folder.is_dir():
        raise DataNotFoundError(
            f"{folder} is not there: `pullpush fetch {place.name}` gets the package {package.name} {package.version}; "
            "another version may have moved it"
        )
    return folder


def _some(spoken: Spoken, languages: Sequence[str], place: Path) -> list[Utterance]:
    chosen = [each for each in spoken.utterances if not languages or each.language in languages]
    silent = sorted(set(languages) - {each.language for each in chosen})
    if silent or not chosen:
        raise DataNotFoundError(
            f"{place} has no recording in {', '.join(silent) or 'any language'}: fetch it again, or choose of "
            f"{', '.join(sorted({each.language for each in spoken.utterances})) or 'none'}"
        )
    return chosen

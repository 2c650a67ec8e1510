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
from typing import NamedTuple

import joblib
import numpy as np
from tqdm.auto import tqdm

from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.data.clips import Columns
from pullpush.data.draws import share
from pullpush.data.recordings import debian
from pullpush.data.recordings.registry import DatasetCard, Listing
from pullpush.errors import AudioError, DataNotFoundError, unknown
from pullpush.progress import hidden

THREADS = 2  # that decode
NAMED = 5  # of what is left out, in a message
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

    def of(self, languages: Sequence[str]) -> Spoken:
        """The utterances in some languages; none, all."""
        kept = [each for each in self.utterances if not languages or each.language in languages]
        return self._replace(utterances=kept)


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
    'Words: 0 recordings in 0 languages; 1 text without a recording (ind/ball), 0 recordings without a text'
    """
    languages = {each.language for each in spoken.utterances}
    return (
        f"{title}: {len(spoken.utterances):,} recordings in {len(languages)} languages; "
        f"{_counted(spoken.unspoken, 'text')} without a recording{_named(spoken.unspoken)}, "
        f"{_counted(spoken.unwritten, 'recording')} without a text{_named(spoken.unwritten)}"
    )


def decoded(folder: Path, paths: Sequence[Path], longest: float | None, sample_rate: int) -> None:
    """Write recordings to a folder (see store.py), each as `wave_of` makes it."""
    parallel = joblib.Parallel(n_jobs=THREADS, prefer="threads", return_as="generator")
    waves = parallel(joblib.delayed(wave_of)(path, longest, sample_rate) for path in paths)
    store.write(folder, tqdm(waves, total=len(paths), desc="decoding speech", unit="recording", disable=hidden()))


def wave_of(path: Path, longest: float | None, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """A recording, trimmed, normalised and cut to `longest` seconds, int16.

    Raises:
        AudioError: it is damaged or silent.
    """
    try:
        wave = trim_silence(check_audible(load_audio(path, sample_rate=sample_rate), path))
    except AudioError as error:
        raise AudioError(f"{error} (somebody who speaks: fetch the recordings again, or remove this file)") from error
    most = None if longest is None else round(longest * sample_rate)
    return store.to_int16(normalise_rms(wave[:most]).numpy())


def translations(
    texts: Mapping[str, Mapping[str, str]], columns: Columns, language: str, *, column: str = "key"
) -> list[list[str]]:
    """What each clip's key is called in a language; none where that is not known.

    texts: language → key → text; column: of the keys.

    Raises:
        UnknownNameError: no key has a text in it.

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
        debian.say(report(facts["title"], read(root / name)))

    size = sum(package.megabytes for package in packages)
    return DatasetCard(make=partial(make, read, ()), folder=name, fetch=fetch, of=of, megabytes=size, **facts)


def labelled(read: Read, languages: Sequence[str], place: Path, split: str) -> Listing:
    """Utterances with what they say as labels; they have no splits."""
    chosen = _some(read(place), languages, place)
    texts = [each.text for each in chosen]
    return Listing([each.path for each in chosen], labels=texts, classes=tuple(sorted(set(texts))))


def captioned(read: Read, languages: Sequence[str], place: Path, split: str) -> Listing:
    """Utterances with what they say as captions, split by text: a tenth validates, a fifth tests."""
    chosen = [each for each in _some(read(place), languages, place) if split_of(each) == split]
    return Listing([each.path for each in chosen], [[each.text] for each in chosen])


def split_of(utterance: Utterance) -> str:
    """The split of an utterance, by its key: the same in all languages, and for all who say it."""
    point = share(("utterance", utterance.key))
    return "test" if point < TEST else "valid" if point < TEST + VALID else "train"


def link(packages: Sequence[debian.Package], place: Path) -> None:
    """Fetch packages, and link to each by its name in the folder; a package that a reader put there is left."""
    missing = [each for each in packages if not (place / each.name).exists() or (place / each.name).is_symlink()]
    place.mkdir(parents=True, exist_ok=True)
    for package, tree in zip(missing, debian.trees(missing), strict=True):
        target = place / package.name
        target.unlink(missing_ok=True)
        target.symlink_to(tree, target_is_directory=True)


def tree_in(place: Path, package: debian.Package, below: str) -> Path:
    """A folder of a package.

    Raises:
        DataNotFoundError: the package or the folder is not there.
    """
    folder = place / package.name / below
    if not folder.is_dir():
        raise DataNotFoundError(
            f"{folder} is not there: `pullpush fetch {place.name}` gets the package {package.name} {package.version}; "
            "another version may have moved it"
        )
    return folder


def _some(spoken: Spoken, languages: Sequence[str], place: Path) -> list[Utterance]:
    chosen = spoken.of(languages).utterances
    silent = sorted(set(languages) - {each.language for each in chosen})
    if silent or not chosen:
        raise DataNotFoundError(
            f"{place} has no recording in {', '.join(silent) or 'any language'}: fetch it again, or choose of "
            f"{', '.join(sorted({each.language for each in spoken.utterances})) or 'none'}"
        )
    return chosen


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


def _named(names: Sequence[str]) -> str:
    return f" ({', '.join(names[:NAMED])}{' …' if names[NAMED:] else ''})" if names else ""

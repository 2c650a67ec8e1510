"""Languages: one YAML file holds all that is known of one, from its name to its grammar.

`fra.yaml` is found by its name, which is the language's ISO 639-3 code; a reader's own lies in
`$PULLPUSH_EXTRA/languages/`. README.md beside this file says what such a file holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pullpush.catalogue import extra_folders
from pullpush.errors import PullPushError, looked_up
from pullpush.golden import versions

FOLDER = Path(__file__).parent
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it


class VocabularyError(PullPushError, ValueError):
    """A file of languages or events is malformed; the message names the file, the entry and what was expected."""


@dataclass(frozen=True)
class Language:
    """What one file says.

    code: ISO 639-3; name: in English; native: in the language itself; html: its code in HTML, for glyphs and voices;
    grammar: how scenes are told (see grammar.py); flores: its code in NLLB's and SONAR's tokenizer; tuxpaint: in the
    stamps of Tux Paint; colour: its role in `show.palette`; book: its place among the languages of the ATRI paper,
    0 for others; events, synthetic: what the events of both banks are called (see vocabulary.py).
    """

    code: str
    name: str
    native: str
    html: str
    grammar: Mapping[str, Any] = field(repr=False)
    flores: str = ""
    tuxpaint: str = ""
    colour: str = "black"
    book: int = 0
    events: Mapping[str, Any] = field(default_factory=dict, repr=False)
    synthetic: Mapping[str, Any] = field(default_factory=dict, repr=False)


def load_languages() -> dict[str, Language]:
    """Code → language: those of the ATRI paper in its order, then all others by their codes.

    >>> load_languages()["fra"].native
    'français'
    """
    return dict(_read_all(tuple((path, path.stat().st_mtime_ns) for path in language_files())))


def language_files() -> tuple[Path, ...]:
    """The files of all languages, the reader's own included."""
    folders = (FOLDER, *extra_folders("languages"))
    return tuple(sorted(path for folder in folders for path in folder.glob("*.yaml")))


def language(code: str) -> Language:
    """The language of an ISO 639-3 code.

    >>> language("zho").html
    'zh-Hans'
    """
    return looked_up("language", code, load_languages())


def told_by(codes: Sequence[str]) -> list[Any]:
    """For keys: what decides how something is told in some languages, their grammars and how these are applied."""
    known = load_languages()
    return [versions(*(f"languages/{code}" for code in codes)), {code: known[code].grammar for code in codes}]


def read_table(path: Path) -> dict[str, Any]:
    """The table that a YAML file holds."""
    try:
        table = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.YAMLError as error:
        raise VocabularyError(f"{path.name}: not valid YAML: {error}") from error
    if not isinstance(table, dict):
        raise VocabularyError(f"{path.name}: expected a table of names, got {type(table).__name__}")
    return table


@lru_cache(maxsize=8)
def _read_all(files: Sequence[tuple[Path, int]]) -> tuple[tuple[str, Language], ...]:
    """Pairs of code and language, sorted; read again only where files are others, or were changed since."""
    found = [_read(path) for path, _ in files]
    found.sort(key=lambda item: (not item.book, item.book, item.code))
    return tuple((item.code, item) for item in found)


def _read(path: Path) -> Language:
    try:
        return Language(path.stem, **read_table(path))
    except TypeError as error:
        raise VocabularyError(f"{path.name} is no language: {error}") from None


LANGUAGES = tuple(code for code, found in load_languages().items() if found.book)
"""ISO 639-3 codes of the eight languages of the ATRI paper, in its order."""

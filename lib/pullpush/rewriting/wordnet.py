"""WordNet 3.0 from Debian's package `wordnet-base`: which words can stand for a word, and in which senses.

The files are read as their manual `wndb(5WN)` says: `index.noun` has a line a lemma, with the byte offsets of its
synsets in `data.noun`, the most frequent sense first; `cntlist.rev` counts how often each was met in tagged text.
`nltk` reads them, too, but looks up lemmas and forms in one: exact ones and the irregular, which captions need here,
lie in what it keeps private, for 18 MB with its `regex`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from pullpush.data.recordings import debian
from pullpush.errors import DataNotFoundError

PACKAGE = debian.Package(
    "wordnet-base",
    "1:3.0-37",
    "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
    6,
    ("usr/share/wordnet/*", "usr/share/doc/wordnet-base/copyright"),
)
PARTS = {"noun": "1", "verb": "2", "adj": "3", "adv": "4"}  # of speech, with their numbers in sense keys
SATELLITE = "5"  # in sense keys, an adjective, too


@dataclass(frozen=True)
class WordNet:
    """The files of one folder, read when they are first asked for.

    Raises:
        DataNotFoundError: the folder has no such files.
    """

    folder: Path

    def senses(self, lemma: str, part: str) -> tuple[tuple[str, ...], ...]:
        """The words of every sense of a lemma as one part of speech, the most frequent sense first.

        `load_wordnet().senses("dog", "noun")[0]` is `("dog", "domestic_dog", "Canis_familiaris")`: words that are
        several are joined by an underscore.
        """
        offsets = self._index[part].get(lemma, ())
        found = []
        with (self.folder / f"data.{part}").open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                found.append(_words(file.readline()))
        return tuple(found)

    def count(self, lemma: str, part: str) -> int:
        """How often a lemma was met as this part of speech, in any sense."""
        return self._counts[lemma, PARTS[part]]

    def forms(self, lemma: str, part: str) -> tuple[str, ...]:
        """The forms of a lemma that no rule gives: mice; abetted and abetting."""
        return tuple(self._forms[part].get(lemma, ()))

    @cached_property
    def _forms(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Part → lemma → irregular forms, from lines `form lemma …`."""
        found: dict[str, dict[str, list[str]]] = {part: {} for part in PARTS}
        for part in PARTS:
            for form, *lemmas in map(str.split, _lines(self.folder / f"{part}.exc")):
                for lemma in lemmas:
                    found[part].setdefault(lemma, []).append(form)
        return found

    @cached_property
    def _index(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Part → lemma → offsets. The first lines, the licence, begin with a space."""
        found: dict[str, dict[str, tuple[int, ...]]] = {}
        for part in PARTS:
            rows = (line.split() for line in _lines(self.folder / f"index.{part}") if not line.startswith(" "))
            found[part] = {row[0]: tuple(map(int, row[-int(row[2]) :])) for row in rows}
        return found

    @cached_property
    def _counts(self) -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        for line in _lines(self.folder / "cntlist.rev"):
            key, _, times = line.split()
            lemma, _, sense = key.partition("%")
            counts[lemma, sense[0].replace(SATELLITE, PARTS["adj"])] += int(times)
        return counts


@cache
def load_wordnet() -> WordNet:
    """WordNet as Debian has it, fetched once by apt (6 MB).

    Raises:
        DataNotFoundError: it cannot be had; the message says what to do.
    """
    return WordNet(debian.tree(PACKAGE) / "usr/share/wordnet")


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DataNotFoundError(f"WordNet has no {path.name} in {path.parent}: delete this folder to fetch it again")
    return path.read_text(encoding="utf-8").splitlines()


def _words(line: bytes) -> tuple[str, ...]:
    """The words of a synset: `offset file type count word number word number …`, the count in hexadecimal."""
    fields = line.decode().split()
    return tuple(word.partition("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2])  # galore(ip)

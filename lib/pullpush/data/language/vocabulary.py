"""The events that scenes are made of, and what each is called in every language.

Tables are curated by hand: `events.yaml` holds the events' categories and recordings, the files of the languages
(`languages/eng.yaml` …) what they are called. `labels.yaml` says what sounds, instruments and classes are called in
eight further languages, which is all that the multilingual USE reads, and names the classes of three published sets in
the languages of GLAP's Table 7.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import regex

from pullpush.data.languages import LANGUAGES as LANGUAGES, VocabularyError, language_files, load_languages, read_table
from pullpush.errors import unknown

SEPARATOR = "|"  # "a frog | croaks": the grammar needs to know where the subject ends
FOLDER = Path(__file__).parent
LABELS = FOLDER / "labels.yaml"


@dataclass(frozen=True)
class Clause:
    """One way to say that something sounds: "a frog" and "croaks"."""

    subject: str
    verb: str


@dataclass(frozen=True)
class Phrases:
    """What one event is called in one language.

    clauses: at least two; nouns: phrases such as "the croaking of a frog"; label: the bare name, for zero-shot prompts.
    """

    clauses: tuple[Clause, ...]
    nouns: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Event:
    """A kind of sound: its recordings (stamp ids, "animals/amphibians/frog") and its phrases by language.

    category: one English word; events that share it are near misses of each other.
    """

    name: str
    category: str
    recordings: tuple[str, ...]
    phrases: dict[str, Phrases]


def load_events() -> tuple[Event, ...]:
    """The curated events, sorted by name. Raises `VocabularyError` where a table is malformed.

    >>> load_events()[0].name
    'bassoon'
    """
    files = (FOLDER / "events.yaml", *language_files())
    return _load_events(tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=8)
def _load_events(_files: Sequence[tuple[Path, int]]) -> tuple[Event, ...]:
    table = read_table(FOLDER / "events.yaml")
    words = {code: language.events for code, language in load_languages().items()}
    for code, phrases in words.items():
        if strange := sorted(set(phrases) - set(table)):
            raise VocabularyError(f"{code}.yaml: {strange[0]}: no such event in events.yaml")
    return tuple(
        Event(name, table[name]["category"], tuple(table[name]["recordings"]), phrases_of(name, words))
        for name in sorted(table)
    )


def parse_clause(text: str, *, where: str = "clause") -> Clause:
    """`"a frog | croaks"` → `Clause("a frog", "croaks")`; `VocabularyError` naming `where` if it is not such a pair."""
    parts = [part.strip() for part in text.split(SEPARATOR)] if isinstance(text, str) else []
    if len(parts) != 2 or not all(parts):
        raise VocabularyError(f'{where}: expected "subject {SEPARATOR} verb", got {text!r}')
    return Clause(*parts)


def parse_phrases(entry: Mapping[str, Any], *, where: str = "phrases") -> Phrases:
    """`{clauses: [...], nouns: [...], label: ...}` → `Phrases`; `VocabularyError` naming `where` if malformed."""
    if not isinstance(entry, Mapping) or set(entry) != {"clauses", "nouns", "label"}:
        raise VocabularyError(f"{where}: expected the keys clauses, nouns, label, got {entry!r}")
    for key in ("clauses", "nouns"):
        if not isinstance(entry[key], list):  # a text would be taken for a list of letters
            raise VocabularyError(f"{where}: expected {key} as a list, got {entry[key]!r}")
    clauses = tuple(parse_clause(text, where=where) for text in entry["clauses"])
    nouns = tuple(entry["nouns"])
    texts = [entry["label"], *nouns, *(part for clause in clauses for part in (clause.subject, clause.verb))]
    for text in texts:
        if not isinstance(text, str) or text != " ".join(text.split()) or not text or SEPARATOR in text:
            raise VocabularyError(f"{where}: expected text without {SEPARATOR!r} or superfluous spaces, got {text!r}")
    if len(set(clauses)) < 2 or not nouns:
        raise VocabularyError(f"{where}: expected at least two different clauses and one noun phrase")
    return Phrases(clauses, nouns, entry["label"])


def phrases_of(name: str, words: Mapping[str, Mapping[str, Any]]) -> dict[str, Phrases]:
    """An event's phrases by language, of those that have them; words: language → event → phrases."""
    return {
        code: parse_phrases(phrases[name], where=f"{code}.yaml: {name}")
        for code, phrases in words.items()
        if name in phrases
    }


class Labels(NamedTuple):
    """sentences: language → the sentence of SupCLAP around a label; names: language → name → label."""

    sentences: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]

    def prompts(self, names: Sequence[str], language: str, template: str | None = None) -> list[str]:
        """One sentence a name: a template, or the language's own.

        >>> load_labels().prompts(["cello", "rain"], "rus")
        ['Это звук: виолончель.', 'Это звук: дождь.']
        """
        if language not in self.names:
            raise unknown("language of labels", language, {*self.names, *load_languages()})
        known = self.names[language]
        for name in names:
            if name not in known:
                offered = [code for code, found in self.names.items() if name in found]
                raise unknown(f"language of the label {name!r}", language, offered)
        return [(template or self.sentences[language]).format(label=known[name]) for name in names]


@cache
def load_labels() -> Labels:
    """What `labels.yaml` says."""
    table = read_table(LABELS)
    sentences = {code: entry.grammar["prompt"] for code, entry in load_languages().items()} | table["prompts"]
    names: dict[str, dict[str, str]] = {}
    for name, words in table["labels"].items():
        for language, label in words.items():
            names.setdefault(language, {})[name] = label
    return Labels(sentences, names)


# Chinese and Japanese write no spaces: each such character counts as a word of its own, which needs no dictionary.
_UNSPACED = r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_LETTER = rf"(?:(?!{_UNSPACED})[\w\p{{M}}\p{{N}}])"  # marks belong to the letters of Hindi, Thai or pointed Hebrew
_WORD = regex.compile(rf"{_UNSPACED}|{_LETTER}+(?:['’·-]{_LETTER}+)*")


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation; apostrophes and hyphens within a word stay.

    >>> words("A dog's bark, 犬が")
    ['a', "dog's", 'bark', '犬', 'が']
    """
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))


def word_frequencies(captions: Iterable[str], *, vocabulary: int = 20_000) -> pd.DataFrame:
    """Words by falling count: the figure plots frequency against rank, both on logarithmic axes.

    captions: texts. vocabulary: most words to return; the paper cuts at 20,000.

    Returns:
        One row a word: rank (from 1), word, count, and frequency, the count divided by the number of all words in the
        captions (also of those beyond the cut). Ties are in alphabetical order.

    >>> word_frequencies(["A frog croaks.", "a frog"]).head(2)["word"].tolist()
    ['a', 'frog']
    """
    if isinstance(captions, str):
        raise TypeError("captions must be several texts, got one string")
    counts = Counter(word for caption in captions for word in words(caption))
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:vocabulary]
    table = pd.DataFrame(ranked, columns=["word", "count"]).astype({"word": str, "count": "int64"})
    table.insert(0, "rank", range(1, len(table) + 1))
    table["frequency"] = table["count"] / max(1, sum(counts.values()))
    return table

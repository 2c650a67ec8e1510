"""What sounds, instruments and classes are called, for prompts, in languages that have no file of their own.

The eight languages of the ATRI paper say it in their files (`languages/eng.yaml` …) and in `music.yaml`; `labels.yaml`
has eight more, which is all that the multilingual USE reads, and the classes of three published sets in the languages
of GLAP's Table 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pullpush.data.languages import VocabularyError, load_languages, read_table
from pullpush.errors import unknown

TABLE = Path(__file__).with_name("labels.yaml")
SLOT = "{label}"


class Labels(NamedTuple):
    """sentences: language → the sentence of SupCLAP around a label; names: language → name → label."""

    sentences: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]

    def prompts(self, names: Sequence[str], language: str, template: str | None = None) -> list[str]:
        """One sentence a name: a template, or the language's own.

        Raises:
            UnknownNameError: there are no labels in this language, or not of one of the names.

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
    """What `labels.yaml` says.

    Raises:
        VocabularyError: a label is no text, a sentence lacks its slot, or a language its sentence.

    >>> load_labels().names["ita"]["owl"]
    'gufo'
    """
    table = read_table(TABLE)
    sentences = {code: entry.grammar["prompt"] for code, entry in load_languages().items()} | table["prompts"]
    names: dict[str, dict[str, str]] = {}
    for name, words in table["labels"].items():
        for language, label in words.items():
            names.setdefault(language, {})[name] = _checked(label, f"{name}: {language}")
    for language in names:
        if SLOT not in sentences.get(language, ""):
            raise VocabularyError(f"{TABLE.name}: prompts: {language} needs a sentence with {SLOT} in it")
    return Labels(sentences, names)


def _checked(label: Any, where: str) -> str:
    if not isinstance(label, str) or not label or label != " ".join(label.split()):
        raise VocabularyError(f"{TABLE.name}: {where}: expected text without superfluous spaces, got {label!r}")
    return label

"""Keyword spotting: clips of people who speak, in one language, with one label a word.

spotting(load_spoken(SpokenConfig(("keywords",))).test, "fra")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pullpush.data.clips import StoredClips
from pullpush.data.utterances import normalised
from pullpush.errors import unknown


def spotting(clips: StoredClips, language: str) -> StoredClips:
    """The clips in one language with one label a word; texts that differ in capitals or signs alone are one word.

    Returns:
        Clips with the column "label"; `prompts(language)` are the words themselves, in the order of the labels.

    Raises:
        UnknownNameError: no clip is in this language.
    """
    rows = [row for row, spoken in enumerate(clips.columns["language"]) if spoken == language]
    if not rows:
        raise unknown(f"language of the clips {clips.name!r}", language, set(clips.columns["language"]))
    chosen = clips.select(rows, name=f"{clips.name} {language}")
    classes: dict[str, str] = {}
    for text in chosen.columns["text"]:
        classes.setdefault(normalised(text), text)
    names = sorted(classes)
    labels = [names.index(normalised(text)) for text in chosen.columns["text"]]
    ask = partial(words_in, language, tuple(classes[name] for name in names))
    return replace(chosen, columns={**chosen.columns, "label": labels}, ask=ask)


def words_in(spoken: str, words: Sequence[str], language: str, template: str | None = None) -> list[str]:
    """The words, which are in one language, in a template if there is one; `UnknownNameError` for others."""
    if language != spoken:
        raise unknown("language of these words", language, [spoken])
    return [(template or "{label}").format(label=word) for word in words]

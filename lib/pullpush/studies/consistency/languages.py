"""The languages that a chapter's data are told in: the book's eight, or those that data of one's own have."""

from __future__ import annotations

from collections.abc import Sequence

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.recordings.registry import datasets_home, find
from pullpush.errors import PullPushError
from pullpush.lab.scenes import SCENES, Material
from pullpush.studies import own_data


class LanguagesError(PullPushError, ValueError):
    """Captions are in too few languages, or not alike in all, for what is asked of them."""


def languages_of(material: Material) -> tuple[str, ...]:
    """Those of the eight languages that a material's captions are in, English first; no recording is read for it.

    Raises:
        LanguagesError: there is English alone, or no English.
    """
    if material.name == SCENES:
        bank = material.book.settings.world["bank"]
        return several(f"scenes of {bank}", own_data.languages_of(bank))
    dataset = find(material.name)
    folder = dataset.where(datasets_home())
    if not folder.is_dir():
        return LANGUAGES  # whoever loads it says how to get it
    told = {dataset.language, *(path.name.split(".")[1] for path in folder.glob("captions.*.csv"))}
    return several(dataset.title, [code for code in LANGUAGES if code in told])


def several(what: str, languages: Sequence[str]) -> tuple[str, ...]:
    """The languages, if there is English and another.

    >>> several("Mine", ["eng", "fra"])
    ('eng', 'fra')

    Raises:
        LanguagesError: there is not.
    """
    if "eng" in languages and len(languages) > 1:
        return tuple(languages)
    others, told = ", ".join(LANGUAGES[1:]), " and ".join(languages) or "none of the eight languages"
    raise LanguagesError(
        f"{what}: captions are in {told} alone, and this page compares English with further languages. Put "
        "translations beside captions.csv of a dataset: captions.fra.csv with the columns file_name and caption, for "
        f"one or more of {others}"
    )


def check_told(split: Clips, languages: Sequence[str]) -> None:
    """Refuse clips that do not have the same number of captions in every language, as spaces of many languages need.

    Raises:
        LanguagesError: a language and a number are named.
    """
    counts = {code: {len(captions) for captions in split.captions(code)} for code in languages}
    if len(set.union(*counts.values())) > 1:
        told = ", ".join(f"{code} {'–'.join(map(str, sorted({min(n), max(n)})))}" for code, n in counts.items())
        raise LanguagesError(
            f"the clips of {split.name} differ in their number of captions ({told}): to compare languages on them give "
            "each clip as many captions in every language"
        )


def named(languages: Sequence[str], *wanted: str) -> None:
    """Refuse what is about certain languages where the data lack one.

    Raises:
        LanguagesError: it is named.
    """
    if missing := [code for code in wanted if code not in languages]:
        raise LanguagesError(
            f"this is about {', '.join(wanted)}, and the captions are in {', '.join(languages)} alone: it needs "
            f"{' and '.join(f'captions.{code}.csv' for code in missing)} beside captions.csv"
        )

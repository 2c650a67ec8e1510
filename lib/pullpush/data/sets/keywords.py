"""Keywords: the words that KTuberling's players hear, spoken by people in 23 languages.

Each `<language>.soundtheme` names a file for each key, such as "egypt_camel"; what the word is in that language stands
in `keywords.yaml`. Four variants of Serbian share their recordings and count once.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from xml.etree import ElementTree

import yaml

from pullpush.data.recordings import debian
from pullpush.data.speech.utterances import Spoken, Utterance, card, tree_in
from pullpush.errors import DataNotFoundError

PACKAGE = debian.Package(
    "ktuberling-data",
    "4:22.12.3-1",
    "fba44c875bfa31ea488dadd9263e87a4dcaea0bd47d28817f6c0dc6d2af970ed",
    47,
    ("usr/share/ktuberling/sounds/*", "usr/share/doc/ktuberling-data/copyright"),
)
SOUNDS = "usr/share/ktuberling/sounds"
TEXTS = Path(__file__).with_name("keywords.yaml")
LANGUAGES = {
    **{"ca": "cat", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "fi": "fin", "fr": "fra"},
    **{"ga": "gle", "gl": "glg", "id": "ind", "it": "ita", "lt": "lit", "nds": "nds", "nl": "nld", "nn": "nno"},
    **{"pt": "por", "ro": "ron", "ru": "rus", "sl": "slv", "sr": "srp", "sr@ijekavian": "srp"},
    **{"sr@ijekavianlatin": "srp", "sr@latin": "srp", "sv": "swe", "uk": "ukr", "wa": "wln"},
}
UNSPOKEN = ("ind",)  # the package has a table of it, and no recording


def texts() -> dict[str, dict[str, str]]:
    """Key → language → word.

    >>> texts()["egypt_camel"]["dan"]
    'kamel'
    """
    return yaml.safe_load(TEXTS.read_text(encoding="utf-8"))


def utterances(place: Path) -> Spoken:
    """The words of all languages, once each; a folder holds the unpacked package under its name.

    Raises:
        DataNotFoundError: the package is not there.
        PullPushError: a table is not as published.
    """
    words, spoken, unspoken, unwritten = texts(), [], [], []
    for variant, sounds in sorted(_tables(tree_in(place, PACKAGE, SOUNDS)).items()):
        language = LANGUAGES.get(variant, variant)
        written = {key for key in sounds if language in words.get(key, {})}
        named = {sounds[key] for key in written}
        for key, path in sounds.items():
            if not path.is_file():
                unspoken.append(f"{variant}/{key}")
            elif key in written:
                voice = f"KTuberling {variant.partition('@')[0]}"
                spoken.append(Utterance(path, language, voice, "word", f"keywords/{key}", words[key][language]))
        files = set(next(iter(sounds.values())).parent.glob("*.*"))
        unwritten += sorted(f"{variant}/{path.name}" for path in files - named)
    return Spoken(_distinct(spoken), unspoken, unwritten)


def _tables(folder: Path) -> dict[str, dict[str, Path]]:
    """Variant → key → file."""
    tables = {}
    for path in folder.glob("*.soundtheme"):
        try:
            sounds = ElementTree.parse(path).getroot().iter("sound")
            tables[path.stem] = {each.attrib["name"]: folder / each.attrib["file"] for each in sounds}
        except (ElementTree.ParseError, KeyError) as error:
            raise DataNotFoundError(f"{path} is not a table of sounds ({error}): fetch keywords again") from error
    return {variant: sounds for variant, sounds in tables.items() if sounds}


def _distinct(spoken: list[Utterance]) -> list[Utterance]:
    """Each recording once for each text: variants of a language share files, and one word serves two keys."""
    first: dict[tuple[str, str, str], Utterance] = {}
    for each in spoken:
        first.setdefault((hashlib.sha256(each.path.read_bytes()).hexdigest(), each.language, each.text), each)
    return list(first.values())


CARD = card(
    utterances,
    [PACKAGE],
    set(LANGUAGES.values()) - set(UNSPOKEN),
    name="keywords",
    title="Keywords of KTuberling",
    about="About 1,600 words, spoken by one person in each of 23 languages: keywords:fra is one language.",
    source="Debian's package ktuberling-data",
    authors="the translators of KDE's KTuberling",
    licence="GPL-2+",
    version=PACKAGE.version,
    labelled=True,
    prompt="{label}",
    seconds=10.0,
)

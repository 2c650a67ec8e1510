"""Letters: the letters and syllables that KLettres teaches, spoken by people in 19 languages.

Each `<language>/sounds.xml` names the file of each letter and each syllable.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from pullpush.data.recordings import debian
from pullpush.data.speech.utterances import Spoken, Utterance, card, normalised, tree_in
from pullpush.errors import DataNotFoundError

PACKAGE = debian.Package(
    "klettres-data",
    "4:22.12.3-1",
    "1186d257a19e84230856baea0b0b1ded8be9195080fcdb2588970b5cd937f5a8",
    40,
    ("usr/share/klettres/*", "usr/share/doc/klettres-data/copyright"),
)
SOUNDS = "usr/share/klettres"
LANGUAGES = {
    **{"ar": "ara", "cs": "ces", "da": "dan", "de": "deu", "en": "eng", "en_GB": "eng", "es": "spa", "fr": "fra"},
    **{"he": "heb", "hu": "hun", "id": "ind", "it": "ita", "lt": "lit", "ml": "mal", "nb": "nob", "nds": "nds"},
    **{"nl": "nld", "nn": "nno", "pt_BR": "por", "ru": "rus", "tn": "tsn", "uk": "ukr"},
}
UNSPOKEN = ("ind", "nno")  # the package has tables of them, and no recordings
KINDS = {"alphabet": "letter", "syllables": "syllable"}


def utterances(place: Path) -> Spoken:
    """The letters and syllables of all languages; a folder holds the unpacked package under its name.

    Raises:
        DataNotFoundError: the package is not there, or a table is not as published.
    """
    folder = tree_in(place, PACKAGE, SOUNDS)
    spoken, unspoken, unwritten = [], [], []
    for table in sorted(folder.glob("*/sounds.xml")):
        variant = table.parent.name
        language = LANGUAGES.get(variant, variant)
        heard: set[Path] = set()
        for kind, text, path in _sounds(table, folder):
            if not path.is_file():
                unspoken.append(f"{variant}/{text}")
            elif path not in heard:  # a file that two texts name holds the first
                key = f"letters/{normalised(text)}"
                spoken.append(Utterance(path, language, f"KLettres {variant}", kind, key, text))
            heard.add(path)
        files = {path for path in table.parent.rglob("*.*") if path.is_file() and path != table}
        unwritten += sorted(str(path.relative_to(folder)) for path in files - heard)
    return Spoken(spoken, unspoken, unwritten)


def _sounds(table: Path, folder: Path) -> list[tuple[str, str, Path]]:
    """Kind, text and file of each line; texts in lower case, since syllables are words as well."""
    try:
        root = ElementTree.parse(table).getroot()
        return [
            (kind, each.attrib["name"].lower(), folder / each.attrib["file"])
            for part, kind in KINDS.items()
            for group in root.iter(part)
            for each in group.iter("sound")
        ]
    except (ElementTree.ParseError, KeyError) as error:
        raise DataNotFoundError(f"{table} is not a table of sounds ({error}): fetch letters again") from error


CARD = card(
    utterances,
    [PACKAGE],
    set(LANGUAGES.values()) - set(UNSPOKEN),
    name="letters",
    title="Letters of KLettres",
    about="About 1,900 letters and syllables in 19 languages: letters:fra is one language.",
    source="Debian's package klettres-data",
    authors="the translators of KDE's KLettres",
    licence="GPL-2+",
    version=PACKAGE.version,
    labelled=True,
    prompt="{label}",
    seconds=10.0,
)

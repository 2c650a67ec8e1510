"""Words, letters and sentences that people speak, from packages of Debian: keywords, letters and prompts.

- Keywords are the words of KTuberling, in 23 languages: `<language>.soundtheme` names a file for each key, such as
  "egypt_camel"; what that is called in the language stands in `keywords.yaml`. Variants of Serbian share recordings.
- Letters and syllables are those of KLettres, in 19 languages: `<language>/sounds.xml` names the file of each.
- Prompts are what the telephone exchange Asterisk says, by professional speakers in five languages, with transcripts,
  at 8 kHz. English and Spanish have one speaker.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from pullpush.data.languages import read_table
from pullpush.data.recordings.debian import Package
from pullpush.data.speech.utterances import Spoken, Utterance, card, normalised, tree_in
from pullpush.errors import DataNotFoundError

CODES = {  # of the packages, without what stands behind "@" or "_" → ISO 639-3
    **{"ar": "ara", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa"},
    **{"fi": "fin", "fr": "fra", "ga": "gle", "gl": "glg", "he": "heb", "hu": "hun", "id": "ind", "it": "ita"},
    **{"lt": "lit", "ml": "mal", "nb": "nob", "nds": "nds", "nl": "nld", "nn": "nno", "pt": "por", "ro": "ron"},
    **{"ru": "rus", "sl": "slv", "sr": "srp", "sv": "swe", "tn": "tsn", "uk": "ukr", "wa": "wln"},
}
KTUBERLING = Package(
    "ktuberling-data",
    "4:22.12.3-1",
    "fba44c875bfa31ea488dadd9263e87a4dcaea0bd47d28817f6c0dc6d2af970ed",
    47,
    ("usr/share/ktuberling/sounds/*", "usr/share/doc/ktuberling-data/copyright"),
)
KLETTRES = Package(
    "klettres-data",
    "4:22.12.3-1",
    "1186d257a19e84230856baea0b0b1ded8be9195080fcdb2588970b5cd937f5a8",
    40,
    ("usr/share/klettres/*", "usr/share/doc/klettres-data/copyright"),
)
ASTERISK = "1.6.1-1"
PROMPTS = {  # who speaks, the package of recordings and its megabytes, and that of the transcripts
    "en": (
        "Allison Smith",
        ("2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d", 18.3),
        "973e797d28e37fa6ca3c0a9d6fa717e77cf1268ae916bf09fd3503113cdffa50",
    ),
    "es": (
        "Allison Smith",
        ("9283a09a6d56fccdcc2bcfe86c48f0f844289cfbd46a3184d8785a6f7f569903", 23.8),
        "9afdab7f559f036649fb406e625899306ca1004df8ebe39c30bfbd5912d66f74",
    ),
    "fr": (
        "June Wallack",
        ("8d4e1bc32ed5ba7fbda40841ca1825ed20cc6232724a473c90f8bb0e53e6073e", 18.5),
        "04c82c78c570c43a7136cbc5e2488d0c470b775468dff9fbce4a131b18cf1056",
    ),
    "it": (
        "Carlo Flora",
        ("5a26638089e134b8ac39363fe249c5c93c50cd8bfdc9b2499ae61ec4a35e2fcb", 18.3),
        "3884d9457e12f21caa018c18f0d587df5d53ebea14b673d8453a134c5941ab3b",
    ),
    "ru": (
        "ivrvoice.ru",
        ("ccbfaebfa450b7a9ddf644ae0f3d1e9017d5df7c0aebe816e946345589d38201", 18.8),
        "28a61616bb0cd3345a7ea532dec4df9f071e5d0fa9f8c1a563ea9669002f39ab",
    ),
}
# Notes to whoever speaks or reads; what else stands in brackets is spoken.
NOTE = re.compile(r"\((?:not[ae]:|simple tone|in inglese|emphase|data|voce|produrre|You are|enfatico|emme)[^()]*\)")
NO_SPEECH = re.compile(r"[\[(<].*[\])>]")  # "[this is a simple beep tone]", "(1 second of silence)", "<beep ascending>"
SIGN = re.compile(r"\[.?\]")  # "dash [-]"
CODE_WORD = re.compile(r"phonetic/._p", re.IGNORECASE)
NUMBER = re.compile(r"digits/(?:h-)?\d+[a-z]?|digits/(?:h-)?(?:hundred|thousand|million|billion)s?", re.IGNORECASE)


def language_of(variant: str) -> str:
    """ISO 639-3 of a package's name for a language; the name itself where nobody knows it.

    >>> language_of("sr@latin"), language_of("pt_BR")
    ('srp', 'por')
    """
    return CODES.get(re.split("[@_]", variant)[0], variant)


@cache
def texts() -> dict[str, dict[str, str]]:
    """Key of KTuberling → language → word.

    >>> texts()["egypt_camel"]["dan"]
    'kamel'
    """
    return read_table(Path(__file__).with_name("keywords.yaml"))


def keywords(place: Path) -> Spoken:
    """The words of all languages, once each; a folder holds the unpacked package under its name."""
    folder = tree_in(place, KTUBERLING, "usr/share/ktuberling/sounds")
    words, spoken, unspoken, unwritten = texts(), [], [], []
    for table in sorted(folder.glob("*.soundtheme"), key=lambda path: path.stem):
        variant, language = table.stem, language_of(table.stem)
        sounds = {name: path for _, name, path in _sounds(table, folder)}
        written = {key for key in sounds if language in words.get(key, {})}
        for key, path in sounds.items():
            if not path.is_file():
                unspoken.append(f"{variant}/{key}")
            elif key in written:
                voice = f"KTuberling {variant.partition('@')[0]}"
                spoken.append(Utterance(path, language, voice, "word", f"keywords/{key}", words[key][language]))
        files = {file for path in list(sounds.values())[:1] for file in path.parent.glob("*.*")}
        unwritten += sorted(f"{variant}/{path.name}" for path in files - {sounds[key] for key in written})
    # Each recording once for each text: variants of a language share files, and one word serves two keys.
    first: dict[tuple[str, str, str], Utterance] = {}
    for each in spoken:
        first.setdefault((hashlib.sha256(each.path.read_bytes()).hexdigest(), each.language, each.text), each)
    return Spoken(list(first.values()), unspoken, unwritten)


def letters(place: Path) -> Spoken:
    """The letters and syllables of all languages; texts are in lower case, since syllables are words as well."""
    folder = tree_in(place, KLETTRES, "usr/share/klettres")
    spoken, unspoken, unwritten = [], [], []
    for table in sorted(folder.glob("*/sounds.xml")):
        variant, heard = table.parent.name, set()
        for kind, name, path in _sounds(table, folder, {"alphabet": "letter", "syllables": "syllable"}):
            text = name.lower()
            if not path.is_file():
                unspoken.append(f"{variant}/{text}")
            elif path not in heard:  # a file that two texts name holds the first
                key, voice = f"letters/{normalised(text)}", f"KLettres {variant}"
                spoken.append(Utterance(path, language_of(variant), voice, kind, key, text))
            heard.add(path)
        files = {path for path in table.parent.rglob("*.*") if path.is_file() and path != table}
        unwritten += sorted(str(path.relative_to(folder)) for path in files - heard)
    return Spoken(spoken, unspoken, unwritten)


def _sounds(table: Path, folder: Path, groups: dict[str, str] | None = None) -> Iterator[tuple[str, str, Path]]:
    """The kind, name and file of each sound in a table of XML; groups: elements that hold them → kind."""
    try:
        root = ElementTree.parse(table).getroot()
        for element, kind in (groups or {root.tag: ""}).items():
            for group in root.iter(element):
                for each in group.iter("sound"):
                    yield kind, each.attrib["name"], folder / each.attrib["file"]
    except (ElementTree.ParseError, KeyError) as error:
        raise DataNotFoundError(f"{table} is not a table of sounds ({error}): fetch it again") from error


def package(variant: str, *, recordings: bool) -> Package:
    """The package of the prompts in one language, or of their transcripts.

    >>> package("fr", recordings=False).name
    'asterisk-core-sounds-fr'
    """
    _, (digest, megabytes), transcripts = PROMPTS[variant]
    name = f"asterisk-core-sounds-{variant}"
    if recordings:
        return Package(f"{name}-wav", ASTERISK, digest, megabytes)
    return Package(name, ASTERISK, transcripts, 0.03)


def prompts(place: Path) -> Spoken:
    """The prompts of all languages; a folder holds the unpacked packages under their names."""
    spoken, unspoken, unwritten = [], [], []
    for variant in PROMPTS:
        root = tree_in(place, package(variant, recordings=True), "usr/share/asterisk/sounds")
        # letters/a for …/en_US_f_Allison/letters/a.wav, in lower case, as some of its transcripts are
        files = {
            "/".join(path.relative_to(root).with_suffix("").parts[1:]).lower(): path
            for path in sorted(root.rglob("*.wav"))
        }
        said = transcripts(place, variant)
        for name, text in said.items():
            if name not in files:
                unspoken.append(f"{variant}/{name}")
            elif words := spoken_part(text):
                spoken.append(_prompt(files[name], variant, name, words))
        silent = (name for name in files if not name.startswith("silence/") and not said.get(name, ""))
        unwritten += [f"{variant}/{name}" for name in silent]
    return Spoken(spoken, unspoken, unwritten)


def transcripts(place: Path, variant: str) -> dict[str, str]:
    """Name of a prompt, in lower case → what its transcript says; the first, where a name comes twice."""
    folder = tree_in(place, package(variant, recordings=False), "usr/share/doc") / f"asterisk-core-sounds-{variant}"
    path = folder / f"core-sounds-{variant}.txt.gz"
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataNotFoundError(f"no transcripts in {path} ({error}): fetch prompts again") from error
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(";"):
            name, _, said = line.partition(":")
            found.setdefault(name.strip().lower(), said.strip())
    return found


def spoken_part(transcript: str) -> str:
    """What is spoken of a transcript; nothing where it describes a sound.

    >>> spoken_part("dash [-]"), spoken_part("[ascending tones]"), spoken_part("IAX (note: does not say \\"2\\")")
    ('dash', '', 'IAX')
    """
    text = SIGN.sub("", NOTE.sub("", transcript)).strip()
    return "" if NO_SPEECH.fullmatch(text) else " ".join(re.sub(r"[\[\]()<>]", " ", text).split())


def _prompt(path: Path, variant: str, name: str, text: str) -> Utterance:
    key, kind = f"prompts/{name}", "sentence" if " " in text else "word"
    if name.startswith("letters/") and len(text) == 1:
        key, kind, text = f"letters/{normalised(text)}", "letter", text.lower()
    elif NUMBER.fullmatch(name):
        kind = "number"
    elif CODE_WORD.fullmatch(name):
        kind = "code word"
    return Utterance(path, CODES[variant], PROMPTS[variant][0], kind, key, text)


CARDS = (
    card(
        keywords,
        [KTUBERLING],
        set(CODES.values()) - {"ara", "ces", "heb", "hun", "ind", "mal", "nob", "tsn"},
        name="keywords",
        title="Keywords of KTuberling",
        about="About 1,600 words, spoken by one person in each of 23 languages: keywords:fra is one language.",
        source="Debian's package ktuberling-data",
        authors="the translators of KDE's KTuberling",
        licence="GPL-2+",
        version=KTUBERLING.version,
        labelled=True,
        prompt="{label}",
        seconds=10.0,
    ),
    card(
        letters,
        [KLETTRES],
        set(CODES.values()) - {"cat", "ell", "fin", "gle", "glg", "ind", "nno", "ron", "slv", "srp", "swe", "wln"},
        name="letters",
        title="Letters of KLettres",
        about="About 1,900 letters and syllables in 19 languages: letters:fra is one language.",
        source="Debian's package klettres-data",
        authors="the translators of KDE's KLettres",
        licence="GPL-2+",
        version=KLETTRES.version,
        labelled=True,
        prompt="{label}",
        seconds=10.0,
    ),
    card(
        prompts,
        [package(variant, recordings=kind) for variant in PROMPTS for kind in (True, False)],
        [CODES[variant] for variant in PROMPTS],
        name="prompts",
        title="Prompts of Asterisk",
        about="About 2,700 sentences, words, numbers and letters in five languages at 8 kHz: prompts:fra is one "
        "language.",
        source="Debian's packages asterisk-core-sounds",
        authors="Allison Smith (English, Spanish), June Wallack (French), Carlo Flora (Italian), ivrvoice.ru (Russian)",
        licence="CC BY-SA 3.0; Italian and Russian CC BY 3.0",
        version=ASTERISK,
        seconds=30.0,
    ),
)

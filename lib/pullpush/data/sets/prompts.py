"""Prompts: what the telephone exchange Asterisk says, by professional speakers in five languages, with transcripts.

The recordings are of telephone quality, 8 kHz: nothing above 4 kHz is in them. English and Spanish have one speaker.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from pullpush.data.recordings import debian
from pullpush.data.speech.utterances import Spoken, Utterance, card, normalised, tree_in
from pullpush.errors import DataNotFoundError

VERSION = "1.6.1-1"
LANGUAGES = {"en": "eng", "es": "spa", "fr": "fra", "it": "ita", "ru": "rus"}
VOICES = {
    "eng": "Allison Smith",
    "spa": "Allison Smith",
    "fra": "June Wallack",
    "ita": "Carlo Flora",
    "rus": "ivrvoice.ru",
}
RECORDINGS = {
    "en": ("2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d", 18.3),
    "es": ("9283a09a6d56fccdcc2bcfe86c48f0f844289cfbd46a3184d8785a6f7f569903", 23.8),
    "fr": ("8d4e1bc32ed5ba7fbda40841ca1825ed20cc6232724a473c90f8bb0e53e6073e", 18.5),
    "it": ("5a26638089e134b8ac39363fe249c5c93c50cd8bfdc9b2499ae61ec4a35e2fcb", 18.3),
    "ru": ("ccbfaebfa450b7a9ddf644ae0f3d1e9017d5df7c0aebe816e946345589d38201", 18.8),
}
TRANSCRIPTS = {
    "en": "973e797d28e37fa6ca3c0a9d6fa717e77cf1268ae916bf09fd3503113cdffa50",
    "es": "9afdab7f559f036649fb406e625899306ca1004df8ebe39c30bfbd5912d66f74",
    "fr": "04c82c78c570c43a7136cbc5e2488d0c470b775468dff9fbce4a131b18cf1056",
    "it": "3884d9457e12f21caa018c18f0d587df5d53ebea14b673d8453a134c5941ab3b",
    "ru": "28a61616bb0cd3345a7ea532dec4df9f071e5d0fa9f8c1a563ea9669002f39ab",
}
SOUNDS, DOC = "usr/share/asterisk/sounds", "usr/share/doc"
# Notes to whoever speaks or reads; what else stands in brackets is spoken.
NOTE = re.compile(r"\((?:not[ae]:|simple tone|in inglese|emphase|data|voce|produrre|You are|enfatico|emme)[^()]*\)")
NO_SPEECH = re.compile(r"[\[(<].*[\])>]")  # "[this is a simple beep tone]", "(1 second of silence)", "<beep ascending>"
SIGN = re.compile(r"\[.?\]")  # "dash [-]"
CODE_WORD = re.compile(r"phonetic/._p", re.IGNORECASE)
NUMBER = re.compile(r"digits/(?:h-)?\d+[a-z]?|digits/(?:h-)?(?:hundred|thousand|million|billion)s?", re.IGNORECASE)


def package(variant: str, *, recordings: bool) -> debian.Package:
    """The package of one language's recordings, or of its transcripts.

    >>> package("fr", recordings=False).name
    'asterisk-core-sounds-fr'
    """
    name = f"asterisk-core-sounds-{variant}"
    if recordings:
        digest, megabytes = RECORDINGS[variant]
        return debian.Package(f"{name}-wav", VERSION, digest, megabytes)
    return debian.Package(name, VERSION, TRANSCRIPTS[variant], 0.03)


def utterances(place: Path) -> Spoken:
    """The prompts of all languages; a folder holds the unpacked packages under their names.

    Raises:
        DataNotFoundError: a package is not there, or its transcripts are not as published.
    """
    spoken, unspoken, unwritten = [], [], []
    for variant, language in LANGUAGES.items():
        recordings = package(variant, recordings=True)
        root = tree_in(place, recordings, SOUNDS)
        files = {_name(path): path for path in sorted(root.rglob("*.wav"))}
        texts = transcripts(place, variant)
        for name, text in texts.items():
            if name not in files:
                unspoken.append(f"{variant}/{name}")
            elif words := said(text):
                spoken.append(_utterance(files[name], language, name, words))
        unwritten += [
            f"{variant}/{name}" for name in files if not name.startswith("silence/") and not texts.get(name, "")
        ]
    return Spoken(spoken, unspoken, unwritten)


def transcripts(place: Path, variant: str) -> dict[str, str]:
    """Name of a prompt, in lower case → what its transcript says; the first, where a name comes twice."""
    folder = tree_in(place, package(variant, recordings=False), DOC) / f"asterisk-core-sounds-{variant}"
    path = folder / f"core-sounds-{variant}.txt.gz"
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataNotFoundError(f"no transcripts in {path} ({error}): fetch prompts again") from error
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(";"):
            name, _, said_as = line.partition(":")
            found.setdefault(name.strip().lower(), said_as.strip())
    return found


def said(transcript: str) -> str:
    """What is spoken of a transcript; nothing where it describes a sound.

    >>> said("dash [-]"), said("[ascending tones]"), said("IAX (note: does not say \\"2\\")")
    ('dash', '', 'IAX')
    """
    text = SIGN.sub("", NOTE.sub("", transcript)).strip()
    if NO_SPEECH.fullmatch(text):
        return ""
    return " ".join(re.sub(r"[\[\]()<>]", " ", text).split())


def _name(path: Path) -> str:
    """letters/a for …/en_US_f_Allison/letters/a.wav, in lower case, as some of its transcripts are."""
    below = path.parts[path.parts.index("sounds") + 2 :]
    return "/".join(below)[: -len(path.suffix)].lower()


def _utterance(path: Path, language: str, name: str, text: str) -> Utterance:
    key, kind = f"prompts/{name}", "sentence" if " " in text else "word"
    if name.startswith("letters/") and len(text) == 1:
        key, kind, text = f"letters/{normalised(text)}", "letter", text.lower()
    elif NUMBER.fullmatch(name):
        kind = "number"
    elif CODE_WORD.fullmatch(name):
        kind = "code word"
    return Utterance(path, language, VOICES[language], kind, key, text)


CARD = card(
    utterances,
    [package(variant, recordings=kind) for variant in LANGUAGES for kind in (True, False)],
    LANGUAGES.values(),
    name="prompts",
    title="Prompts of Asterisk",
    about="About 2,700 sentences, words, numbers and letters in five languages at 8 kHz: prompts:fra is one language.",
    source="Debian's packages asterisk-core-sounds",
    authors="Allison Smith (English, Spanish), June Wallack (French), Carlo Flora (Italian), ivrvoice.ru (Russian)",
    licence="CC BY-SA 3.0; Italian and Russian CC BY 3.0",
    version=VERSION,
    seconds=30.0,
)

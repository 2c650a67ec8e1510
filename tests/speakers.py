"""Miniature packages of people who speak, in the layouts of Debian's: tones in place of words."""

import gzip
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import soundfile

WORDS = ("ear", "eye", "nose", "mouth", "hat", "hair", "tie", "bow", "eyebrow", "moustache", "spectacles", "earring")
LETTERS = "abcdefghijklmnopqrst"


def tone(number: int, *, rate: int = 16_000, kind: str = "WAV") -> bytes:
    """A recording of a fifth of a second whose pitch depends on the number."""
    time = np.arange(rate // 5) / rate
    memory = io.BytesIO()
    soundfile.write(memory, 0.3 * np.sin(2 * np.pi * (200 + 40 * number) * time), rate, format=kind)
    return memory.getvalue()


def write(place: Path, files: Mapping[str, bytes | str]) -> None:
    """Files below a folder."""
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def keywords(root: Path) -> Path:
    """Words in French and German; Serbian twice, in the same recordings; a table of Indonesian without any."""
    sounds = root / "keywords" / "ktuberling-data" / "usr" / "share" / "ktuberling" / "sounds"
    told = {"fr": WORDS, "de": WORDS, "sr": WORDS[:4], "sr@latin": WORDS[:4]}
    for start, (variant, words) in enumerate(told.items()):
        files = {f"{variant}/{word}.wav": tone(10 * min(start, 2) + row) for row, word in enumerate(words)}
        write(sounds, {**files, f"{variant}.soundtheme": theme(variant, words)})
    write(sounds, {"id.soundtheme": theme("id", WORDS[:3])})
    write(sounds, {"fr/old_ear.wav": tone(0), "fr/huh.wav": tone(5)})
    return root / "keywords"


def theme(variant: str, words: tuple[str, ...]) -> str:
    """A table of sounds; French has one key more, of which nobody knows what is said."""
    more = '<sound name="tux-unheard-of" file="fr/huh.wav"/>' if variant == "fr" else ""
    lines = "".join(f'<sound name="{word}" file="{variant}/{word}.wav" />' for word in words)
    return f'<?xml version="1.0"?><language code="{variant}">{lines}{more}</language>'


def letters(root: Path) -> Path:
    """Letters of English in two voices, and of German; one letter lacks its recording."""
    sounds = root / "letters" / "klettres-data" / "usr" / "share" / "klettres"
    for start, variant in enumerate(("en", "en_GB", "de")):
        lines = "".join(f'<sound name="{x.upper()}" file="{variant}/alpha/{x}.ogg"/>' for x in LETTERS)
        syllables = "".join(f'<sound name="{x.upper()}" file="{variant}/syllab/{x}.ogg"/>' for x in ("ox", "no"))
        parts = f"<alphabet>{lines}</alphabet><syllables>{syllables}</syllables>"
        files = {f"alpha/{x}.ogg": tone(20 * start + row, kind="OGG") for row, x in enumerate(LETTERS)}
        files["syllab/ox.ogg"] = tone(50 + start, kind="OGG")
        write(sounds / variant, {"sounds.xml": f"<klettres><language>{parts}</language></klettres>", **files})
    return root / "letters"


TRANSCRIPTS = """; Core sounds

activated: {activated}
agent-user: Agent login.  Please enter your number.
beep: [this is a simple beep tone]
gone: This was never recorded.
silence/1: (1 second of silence)
digits/7: {seven}
letters/dash: dash [-]
letters/A: a
letters/A: b
phonetic/C_P: charlie
spy-iax2: IAX (note: does not say "2")
vm-intro: Please leave a message. (simple tone sound plays)
"""


def prompts(root: Path) -> Path:
    """Prompts in five languages; one text has no recording, and one recording no text."""
    recorded = ("activated", "agent-user", "beep", "silence/1", "digits/7", "letters/dash", "letters/a", "phonetic/c_p")
    sevens = {"en": "seven", "es": "siete", "fr": "sept", "it": "sette", "ru": "семь"}
    for start, (variant, seven) in enumerate(sevens.items()):
        name = f"asterisk-core-sounds-{variant}"
        text = "\ufeff" + TRANSCRIPTS.format(activated=f"Activated {variant}.", seven=seven)
        compressed = gzip.compress(text.encode())
        write(root / "prompts" / name, {f"usr/share/doc/{name}/core-sounds-{variant}.txt.gz": compressed})
        sounds = root / "prompts" / f"{name}-wav" / "usr" / "share" / "asterisk" / "sounds" / f"{variant}_X"
        names = (*recorded, "spy-iax2", "vm-intro", "untold")
        write(sounds, {f"{each}.wav": tone(20 * start + row, rate=8000) for row, each in enumerate(names)})
    return root / "prompts"

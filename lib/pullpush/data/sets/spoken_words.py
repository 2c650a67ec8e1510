"""Words, letters and sentences that people speak, from packages of Debian: keywords, letters and prompts.

- Keywords are the words of KTuberling, in 23 languages: `<language>.soundtheme` names a file for each key, such as
  "egypt_camel"; what that is called in the language stands in `keywords.yaml`. Variants of Serbian share recordings.
- Letters and syllables are those of KLettres, in 19 languages: `<language>/sounds.xml` names the file of each.
- Prompts are what the telephone exchange Asterisk says, by professional speakers in five languages, with transcripts,
  at 8 kHz. English and Spanish have one speaker.

A reader of one of them takes a folder that holds the unpacked packages under their names, and gives what is spoken:
texts without a recording and recordings without a text are left out.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from xml.etree import ElementTree

from pullpush.cache import digest
from pullpush.data.draws import share
from pullpush.data.languages import read_table
from pullpush.data.recordings.debian import Package, packages, trees
from pullpush.data.recordings.registry import DatasetCard, Listing
from pullpush.data.speech import Utterance, normalised
from pullpush.errors import DataNotFoundError, check_all_known

CODES = {  # of the packages, without what stands behind "@" or "_" → ISO 639-3
    **{"ar": "ara", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa"},
    **{"fi": "fin", "fr": "fra", "ga": "gle", "gl": "glg", "he": "heb", "hu": "hun", "id": "ind", "it": "ita"},
    **{"lt": "lit", "ml": "mal", "nb": "nob", "nds": "nds", "nl": "nld", "nn": "nno", "pt": "por", "ro": "ron"},
    **{"ru": "rus", "sl": "slv", "sr": "srp", "sv": "swe", "tn": "tsn", "uk": "ukr", "wa": "wln"},
}
KTUBERLING, KLETTRES = packages()["ktuberling-data"], packages()["klettres-data"]
SPEAKERS = {
    "en": "Allison Smith",
    "es": "Allison Smith",
    "fr": "June Wallack",
    "it": "Carlo Flora",
    "ru": "ivrvoice.ru",
}
RECORDINGS, TRANSCRIPTS = (
    {variant: packages()[f"asterisk-core-sounds-{variant}{kind}"] for variant in SPEAKERS} for kind in ("-wav", "")
)
VALID, TEST = 0.1, 0.2  # shares of the texts, where a source is split
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
    """Key of KTuberling → language → word."""
    return read_table(Path(__file__).with_name("keywords.yaml"))


def keywords(place: Path) -> list[Utterance]:
    """The words of all languages, once each."""
    folder = tree_in(place, KTUBERLING, "usr/share/ktuberling/sounds")
    words = texts()
    # Each recording once for each text: variants of a language share files, and one word serves two keys.
    first: dict[tuple[str, str, str], Utterance] = {}
    for table in sorted(folder.glob("*.soundtheme"), key=lambda path: path.stem):
        language, voice = language_of(table.stem), f"KTuberling {table.stem.partition('@')[0]}"
        for key, path in {name: path for _, name, path in _sounds(table, folder)}.items():
            if path.is_file() and language in words.get(key, {}):
                each = Utterance(path, language, voice, "word", f"keywords/{key}", words[key][language])
                first.setdefault((digest(path), language, each.text), each)
    return list(first.values())


def letters(place: Path) -> list[Utterance]:
    """The letters and syllables of all languages; texts are in lower case, since syllables are words as well."""
    folder = tree_in(place, KLETTRES, "usr/share/klettres")
    spoken: dict[Path, Utterance] = {}
    for table in sorted(folder.glob("*/sounds.xml")):
        variant = table.parent.name
        for kind, name, path in _sounds(table, folder, {"alphabet": "letter", "syllables": "syllable"}):
            text = name.lower()
            if path.is_file():  # a file that two texts name holds the first
                key, voice = f"letters/{normalised(text)}", f"KLettres {variant}"
                spoken.setdefault(path, Utterance(path, language_of(variant), voice, kind, key, text))
    return list(spoken.values())


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


def prompts(place: Path) -> list[Utterance]:
    """The prompts of all languages."""
    spoken = []
    for variant in SPEAKERS:
        root = tree_in(place, RECORDINGS[variant], "usr/share/asterisk/sounds")
        # letters/a for …/en_US_f_Allison/letters/a.wav, in lower case, as some of its transcripts are
        files = {
            "/".join(path.relative_to(root).with_suffix("").parts[1:]).lower(): path
            for path in sorted(root.rglob("*.wav"))
        }
        for name, text in transcripts(place, variant).items():
            if name in files and (words := spoken_part(text)):
                spoken.append(_prompt(files[name], variant, name, words))
    return spoken


def transcripts(place: Path, variant: str) -> dict[str, str]:
    """Name of a prompt, in lower case → its transcript; the first, where a name comes twice."""
    name = TRANSCRIPTS[variant].name
    path = tree_in(place, TRANSCRIPTS[variant], "usr/share/doc") / name / f"core-sounds-{variant}.txt.gz"
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataNotFoundError(f"no transcripts in {path} ({error}): fetch prompts again") from error
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(";"):
            name, _, written = line.partition(":")
            found.setdefault(name.strip().lower(), written.strip())
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
    return Utterance(path, CODES[variant], SPEAKERS[variant], kind, key, text)


def tree_in(place: Path, package: Package, below: str) -> Path:
    """A folder of a package; `DataNotFoundError` if it is not there."""
    folder = place / package.name / below
    if not folder.is_dir():
        raise DataNotFoundError(
            f"{folder} is not there: `pullpush fetch {place.name}` gets the package {package.name} {package.version}; "
            "another version may have moved it"
        )
    return folder


# ---------------------------------------------------------------- as datasets


def listed(
    read: Callable[[Path], list[Utterance]], languages: Sequence[str], place: Path, split: str, *, labelled: bool
) -> Listing:
    """Utterances in some languages, all if none are named: with what is spoken as labels, in no splits; or as captions,
    split by key, the same in all languages.
    """
    spoken = read(place)
    chosen = [each for each in spoken if not languages or each.language in languages]
    silent = sorted(set(languages) - {each.language for each in chosen})
    if silent or not chosen:
        raise DataNotFoundError(
            f"{place} has no recording in {', '.join(silent) or 'any language'}: fetch it again, or choose of "
            f"{', '.join(sorted({each.language for each in spoken})) or 'none'}"
        )
    if labelled:
        names = [each.text for each in chosen]
        return Listing([each.path for each in chosen], labels=names, classes=tuple(sorted(set(names))))
    points = [share(("utterance", each.key)) for each in chosen]
    splits = ["test" if point < TEST else "valid" if point < TEST + VALID else "train" for point in points]
    some = [each for each, its in zip(chosen, splits, strict=True) if its == split]
    return Listing([each.path for each in some], [[each.text] for each in some])


def fetch(wanted: Sequence[Package], name: str, root: Path) -> None:
    """Fetch packages, and link to each by its name in the folder; a package that a reader put there is left."""
    place = root / name
    missing = [each for each in wanted if not (place / each.name).exists() or (place / each.name).is_symlink()]
    place.mkdir(parents=True, exist_ok=True)
    for package, tree in zip(missing, trees(missing), strict=True):
        target = place / package.name
        target.unlink(missing_ok=True)
        target.symlink_to(tree, target_is_directory=True)


def card(
    read: Callable[[Path], list[Utterance]],
    wanted: Sequence[Package],
    languages: Iterable[str],
    *,
    labelled=False,
    **facts,
) -> DatasetCard:
    """The card of a source: `name` is all of it, `name:fra` one language, `name:fra,deu` several.

    labelled: one class a text, in place of captions; facts: see `DatasetCard`.
    """
    known, name = sorted(languages), read.__name__

    def of(whole: DatasetCard, argument: str) -> DatasetCard:
        some = tuple(part.strip() for part in argument.split(","))
        check_all_known(f"language of {name}", some, known)
        make = partial(listed, read, some, labelled=labelled)
        return replace(whole, title=f"{whole.title} ({', '.join(some)})", make=make)

    return DatasetCard(
        name=name,
        make=partial(listed, read, (), labelled=labelled),
        folder=name,
        labelled=labelled,
        prompt="{label}" if labelled else "",
        fetch=partial(fetch, wanted, name),
        of=of,
        version=wanted[0].version,
        megabytes=sum(package.megabytes for package in wanted),
        **facts,
    )


CARDS = (
    card(
        keywords,
        [KTUBERLING],
        set(CODES.values()) - {"ara", "ces", "heb", "hun", "ind", "mal", "nob", "tsn"},
        labelled=True,
        title="Keywords of KTuberling",
        about="About 1,600 words, spoken by one person in each of 23 languages: keywords:fra is one language.",
        source="Debian's package ktuberling-data",
        authors="the translators of KDE's KTuberling",
        licence="GPL-2+",
    ),
    card(
        letters,
        [KLETTRES],
        set(CODES.values()) - {"cat", "ell", "fin", "gle", "glg", "ind", "nno", "ron", "slv", "srp", "swe", "wln"},
        labelled=True,
        title="Letters of KLettres",
        about="About 1,900 letters and syllables in 19 languages: letters:fra is one language.",
        source="Debian's package klettres-data",
        authors="the translators of KDE's KLettres",
        licence="GPL-2+",
    ),
    card(
        prompts,
        [table[variant] for variant in SPEAKERS for table in (RECORDINGS, TRANSCRIPTS)],
        [CODES[variant] for variant in SPEAKERS],
        title="Prompts of Asterisk",
        about="About 2,700 sentences, words, numbers and letters in five languages at 8 kHz: prompts:fra is one "
        "language.",
        source="Debian's packages asterisk-core-sounds",
        authors="Allison Smith (English, Spanish), June Wallack (French), Carlo Flora (Italian), ivrvoice.ru (Russian)",
        licence="CC BY-SA 3.0; Italian and Russian CC BY 3.0",
        seconds=30.0,
    ),
)

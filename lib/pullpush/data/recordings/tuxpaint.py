"""Tux Paint's stamps: pictures, captions in 78 languages, people who speak them, and recorded sounds.

Debian's package `tuxpaint-stamps-default` holds them all (161 MB). It is fetched once, without root, by apt, which
verifies what it fetches against the distribution's signed lists. `$PULLPUSH_TUXPAINT` names a copy that is on disk
already: the package, the project's own release, or an unpacked folder.

*Takes* are further recordings of its events from five small packages, by other people with other microphones:
`takes.yaml` says which recording is of which event, and what was left out. Some lie inside other files, resources of Qt
programs (.rcc) and sound catalogues of OpenTTD (.cat): these are read from bytes into a mapping, and nothing of what
they name is written anywhere by its name.
"""

import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import pandas as pd

from pullpush.cache import cached_dir, content_key
from pullpush.data.languages import load_languages, read_table
from pullpush.data.recordings import debian
from pullpush.errors import DataNotFoundError
from pullpush.progress import tell

SOURCE = "PULLPUSH_TUXPAINT"
PACKAGE = debian.packages()["tuxpaint-stamps-default"]
RELEASE = (
    "https://downloads.sourceforge.net/project/tuxpaint/tuxpaint-stamps/2022-06-04/tuxpaint-stamps-2022.06.04.tar.gz"
)
RELEASE_SHA256 = "842065576fae554358e00e51d71a492616a6490b12b592228067477c287a0bf8"
ADVICE = (
    f"connect to the network and try again, or set {SOURCE} to a copy that you have: the package {PACKAGE.name}_*.deb, "
    f"the project's release ({RELEASE}), or an unpacked folder 'stamps'. Without it there is the bank 'synthetic' "
    "(profile smoke)"
)

SPOKEN = re.compile(r"(?P<name>.+)_desc(?:_(?P<language>[A-Za-z]{2,3}(?:_[A-Z]{2})?(?:@[a-z]+)?))?(?:\.ogg)?")
TRANSLATED = re.compile(
    r"(?P<language>[A-Za-z]{2,3}(?:_[A-Z]{2})?(?:@[a-z]+)?)(?:\.utf-?8)?=(?P<text>.*)", re.IGNORECASE
)
SOUNDS = (".ogg", ".wav")  # the alphabetically first is preferred where a stamp has both; so with pictures
PICTURES = (".png", ".svg")
MIRRORED = "_mirror"  # the same thing seen the other way round
PLACES = ("stamps", "usr/share/tuxpaint/stamps", "share/tuxpaint/stamps", "*/stamps")  # in folders and archives


@dataclass(frozen=True, eq=False)
class Stamps:
    """What the stamps offer, as tables; `stamp` is the path without its suffix ("animals/amphibians/frog").

    captions: stamp, language, text, code; speech: stamp, language, path (people who speak the captions); effects:
    stamp, path (recorded sounds); pictures: stamp, path. Languages are ISO 639-3 codes for those of `data/languages`,
    and the files' own codes for all others; `code` is always the files' own. Chinese ("zho") is simplified (code
    "zh_CN") where it exists and traditional (code "zh_TW") otherwise.
    """

    captions: pd.DataFrame
    speech: pd.DataFrame
    effects: pd.DataFrame
    pictures: pd.DataFrame


def fetch() -> Path:
    """The folder of stamps: fetched and unpacked when first asked for, by one process where several ask."""
    named = os.environ.get(SOURCE)
    if not named:
        return cached_dir("tuxpaint", "stamps", _download) / "stamps"
    given = Path(named).expanduser().absolute()
    if given.is_dir():
        return _stamps_in(given)
    if not given.is_file():
        raise DataNotFoundError(f"{SOURCE} is {named}, but there is nothing: correct it, or {ADVICE}")
    facts = given.stat()
    key = content_key([str(given), facts.st_size, facts.st_mtime_ns])
    return cached_dir("tuxpaint", key, lambda folder: _unpack(given, folder)) / "stamps"


def recording(stamps: Path, stamp: str) -> Path:
    """The sound of one stamp below the folder `stamps`."""
    for suffix in SOUNDS:
        if (path := stamps / f"{stamp}{suffix}").is_file():
            return path
    raise DataNotFoundError(
        f"no recording of {stamp!r} in {stamps}: the copy is incomplete, or of another version than 2022-06-04. Remove "
        f"it to fetch it again, or name the recording that it has in data/language/events.yaml"
    )


def index(root: Path | None = None) -> Stamps:
    """The tables of the stamps in `root` (default: those of `fetch()`), sorted by stamp; read once a process."""
    return _index(fetch() if root is None else Path(root))


# ---------------------------------------------------------------- fetching


def _download(folder: Path) -> None:
    """Fetch the package by apt, and unpack it to `folder`/stamps."""
    work = folder / "download"
    work.mkdir()
    tell(f"fetching {PACKAGE.name} ({PACKAGE.megabytes} MB) by apt")
    try:
        with debian.apt() as download:
            archive = download(PACKAGE, work)
    except DataNotFoundError as error:
        raise DataNotFoundError(f"cannot fetch the Tux Paint stamps (apt: {error}): {ADVICE}") from error
    _unpack(archive, folder)
    shutil.rmtree(work)


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a .deb or a tarball, and leave its stamps as `folder`/stamps; warn where it is another version's, whose
    signature is apt's to check."""
    debian.compare(archive, "version 2022.06.04 of the stamps", PACKAGE.sha256, RELEASE_SHA256)
    tell(f"unpacking {archive.name}")
    tree = folder / "unpacked"
    tree.mkdir()
    try:
        debian.unpack(archive, tree)
    except DataNotFoundError as error:
        raise DataNotFoundError(f"{error}, or {ADVICE}") from error
    os.replace(_stamps_in(tree), folder / "stamps")
    shutil.rmtree(tree)


def _stamps_in(folder: Path) -> Path:
    """The folder of stamps at or below `folder`, wherever package, release or user put it."""
    for path in (folder, *(path for place in PLACES for path in sorted(folder.glob(place)))):
        if (path / "animals").is_dir():
            return path
    raise DataNotFoundError(f"{folder} holds no stamps (a folder with 'animals' in it): {ADVICE}")


# ---------------------------------------------------------------- tables


@lru_cache(maxsize=4)
def _index(root: Path) -> Stamps:
    """Sort every file below `root` into the four tables."""
    captions, speech, effects, pictures = [], [], {}, {}
    codes = _codes()
    for path in sorted(root.rglob("*"), key=lambda path: (path.with_suffix("").as_posix(), path.suffix)):
        name = path.relative_to(root).with_suffix("").as_posix()
        if path.suffix == ".txt":
            captions += [(name, *row) for row in parse_captions(path.read_bytes())]
        elif path.suffix in SOUNDS:
            if spoken := SPOKEN.fullmatch(name):
                speech.append((spoken["name"], codes.get(code := spoken["language"] or "en", code), str(path)))
            elif not name.startswith("symbols/"):  # there, sounds are spoken numbers and letters
                effects.setdefault(name, str(path))
        elif path.suffix in PICTURES and not name.endswith(MIRRORED):
            pictures.setdefault(name, str(path))
    if not captions:
        raise DataNotFoundError(f"{root} holds no stamps: {ADVICE}")
    return Stamps(
        pd.DataFrame(captions, columns=["stamp", "language", "text", "code"]),
        pd.DataFrame(speech, columns=["stamp", "language", "path"]),
        pd.DataFrame(list(effects.items()), columns=["stamp", "path"]),
        pd.DataFrame(list(pictures.items()), columns=["stamp", "path"]),
    )


def parse_captions(content: bytes) -> list[tuple[str, str, str]]:
    """Language, text and the file's own code of each caption in a stamp's .txt file, in the order of the file.

    The first line is English, the others read `fr.utf8=Une grenouille.`; a byte-order mark, bytes that are not UTF-8,
    superfluous spaces, empty translations and lines of another form are tolerated.
    """
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    texts = {"en": " ".join(lines[0].split())} if lines and not TRANSLATED.fullmatch(lines[0]) else {}
    for line in lines:
        if translated := TRANSLATED.fullmatch(line.strip()):
            texts.setdefault(translated["language"], " ".join(translated["text"].replace("\ufffd", "").split()))
    codes = _codes()
    rows = [(codes.get(code, code), text, code) for code, text in texts.items() if text]
    if not texts.get("zh_CN") and texts.get("zh_TW"):
        rows.append(("zho", texts["zh_TW"], "zh_TW"))
    return rows


def _codes() -> dict[str, str]:
    """The stamps' code of a language → its ISO 639-3 code, of the languages that the book knows."""
    return {language.tuxpaint: code for code, language in load_languages().items() if language.tuxpaint}


# ---------------------------------------------------------------- further takes

COMPRESSED, FOLDER, ZSTANDARD = 1, 2, 4  # flags of an entry of a Qt resource
DEPTH = 32  # folders within folders; more would be a loop
TAKES = Path(__file__).with_name("takes.yaml")


def member(path: Path, name: str) -> bytes:
    """The bytes of one member of a container, whose suffix says what it is; name: the last part of the member's path in
    a Qt resource, its number in a catalogue.
    """
    if not path.is_file():
        raise DataNotFoundError(f"no container {path}: remove its folder to fetch it again")
    try:
        found = CONTAINERS[path.suffix](path.read_bytes())
    except (struct.error, zlib.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise DataNotFoundError(f"{path} is damaged ({error}): remove its folder to fetch it again") from error
    if name not in found:
        raise DataNotFoundError(f"{path} has no member {name!r}: it is of another version. It has {sorted(found)}")
    return found[name]


def qt_resources(data: bytes) -> dict[str, bytes]:
    """Last part of the path → content, of a binary Qt resource file.

    A header names three tables: a tree of entries (14 bytes, 22 from version 2 on: name, flags, and either children or
    locale and place of the content), contents and names; all numbers are big-endian. Compression is zlib's behind four
    bytes of the size.
    """
    magic, version, tree, contents, names = struct.unpack_from(">4sIIII", data)
    if magic != b"qres":
        raise ValueError("no Qt resource: it does not begin with 'qres'")
    size = 14 if version < 2 else 22

    def walk(entry: int, depth: int) -> Iterator[tuple[str, bytes]]:
        place, flags = struct.unpack_from(">IH", data, tree + entry * size)
        if flags & FOLDER:
            if depth == DEPTH:
                raise ValueError(f"folders go more than {DEPTH} deep")
            count, first = struct.unpack_from(">II", data, tree + entry * size + 6)
            for child in range(first, first + count):
                yield from walk(child, depth + 1)
            return
        (letters,) = struct.unpack_from(">H", data, names + place)
        name = data[names + place + 6 : names + place + 6 + 2 * letters].decode("utf-16-be")
        (start,) = struct.unpack_from(">I", data, tree + entry * size + 10)
        (length,) = struct.unpack_from(">I", data, contents + start)
        content = data[contents + start + 4 : contents + start + 4 + length]
        if len(content) < length or flags & ZSTANDARD:
            raise ValueError(f"{name} is {'incomplete' if len(content) < length else 'compressed by Zstandard'}")
        yield name, zlib.decompress(content[4:]) if flags & COMPRESSED else content

    return dict(walk(0, 0))


def openttd_sounds(data: bytes) -> dict[str, bytes]:
    """Number ("0", "1" …) → WAV file, of a sound catalogue.

    It begins with pairs of place and length (little-endian; the first place ends the table; its top bit only says that
    names follow); at each place stand the length of a title, the title and the recording.
    """
    (first,) = struct.unpack_from("<I", data)
    found = {}
    for number in range((first & 0x7FFFFFFF) // 8):
        place, length = struct.unpack_from("<II", data, 8 * number)
        start = (place & 0x7FFFFFFF) + 1 + data[place & 0x7FFFFFFF]
        found[str(number)] = data[start : start + length]
        if len(found[str(number)]) < length:
            raise ValueError(f"sound {number} is incomplete")
    return found


CONTAINERS: Mapping[str, Callable[[bytes], dict[str, bytes]]] = {".rcc": qt_resources, ".cat": openttd_sounds}


SOURCES: Mapping[str, debian.Package] = {
    "freedesktop": debian.packages()["sound-theme-freedesktop"],
    "gcompris": debian.packages()["gcompris-qt-data"],
    "homedecor": debian.packages()["minetest-mod-homedecor"],
    "opensfx": debian.packages()["openttd-opensfx"],
    "scratch": debian.packages()["scratch"],
}


@cache
def load_takes() -> dict[str, tuple[str, ...]]:
    """Event → its further recordings, sorted by event: "package/path" or "package/path:member"."""
    return {event: tuple(takes) for event, takes in sorted(read_table(TAKES).items())}


def fetch_takes() -> dict[str, Path]:
    """Recording as `load_takes` names it → its file; packages are fetched when first asked for."""
    folders = dict(zip(SOURCES, debian.trees([*SOURCES.values()]), strict=True))
    takes = [take for takes in load_takes().values() for take in takes]
    inside = [take for take in takes if ":" in take]

    def build(folder: Path) -> None:
        for number, take in enumerate(inside):
            path, _, name = take.partition(":")
            (folder / f"{number}").write_bytes(member(_place_of(folders, path), name))

    key = content_key([inside, *sorted(folder.name for folder in folders.values())])
    extracted = cached_dir("takes", key, build) if inside else Path()
    files = {take: extracted / f"{number}" for number, take in enumerate(inside)}
    for take in takes:
        path = files.setdefault(take, _place_of(folders, take))
        if not path.is_file():
            raise DataNotFoundError(
                f"no recording {path}: the package is of another version. Remove its folder, or name "
                f"what it has in {TAKES.name}"
            )
    return files


def _place_of(folders: Mapping[str, Path], take: str) -> Path:
    source, _, path = take.partition("/")
    return folders[source] / SOURCES[source].place / path

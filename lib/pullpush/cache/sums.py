"""What entries held when they were written: sizes and checksums, compared when they are opened.

A folder's are in its `.sums`, a file's beside it in `.<name>.sums`: for each file by its relative name the sizes and
SHA-256 that it may have. That is more than one while a file is being replaced, so that a process killed between the two
writes leaves nothing that looks damaged. Entries without them are of earlier versions, and are taken as they are.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pullpush.cache.places import PARTIAL, home

SUMS = ".sums"
SMALL = 32 << 20  # bytes: larger files are compared by size when they are opened, and by checksum when `doctor` asks
Sum = list[Any]  # bytes, SHA-256

_trusted: set[Path] = set()  # entries that were whole when this process opened or made them


def sums_of(entry: Path) -> Path:
    """Where the sums of a folder or a file are."""
    return entry / SUMS if entry.is_dir() else entry.with_name(f".{entry.name}{SUMS}")


def write_folder(folder: Path) -> None:
    """Write the sums of all files that a folder holds."""
    found = {str(path.relative_to(folder)): [_sum(path)] for path in _files(folder)}
    (folder / SUMS).write_text(json.dumps(found), encoding="utf-8")


def announce(path: Path, written: Path) -> None:
    """Write down what `path` will hold once `written` takes its place, if it is an entry's own file in the cache."""
    parts = path.relative_to(home()).parts if path.is_relative_to(home()) else ()
    if len(parts) not in (2, 3) or any(part.startswith(".") for part in parts):
        return
    table = path.with_name(f".{path.name}{SUMS}") if len(parts) == 2 else path.parent / SUMS
    known = _read(table) or {}
    known[path.name] = [_sum(written), *known.get(path.name, [])[:1]]
    partial = table.with_name(f"{PARTIAL}{os.getpid()}{table.name}")
    partial.write_text(json.dumps(known), encoding="utf-8")
    os.replace(partial, table)


def leave_out(path: Path) -> None:
    """Write down that a file of a folder is gone."""
    known = _read(path.parent / SUMS) or {}
    known.pop(path.name, None)
    (path.parent / SUMS).write_text(json.dumps(known), encoding="utf-8")


def trust(entry: Path) -> None:
    """Remember that an entry is whole, and leave the time of its use on its sums."""
    if entry not in _trusted:
        _trusted.add(entry)
        with suppress(OSError):  # none, or a read-only disk
            os.utime(sums_of(entry))


def damage(entry: Path, *, folder: bool | None = None, thorough: bool = False, only: Collection[str] = ()) -> str:
    """What is wrong with an entry, such as "samples.i16 has 12 bytes in place of 40"; "" if nothing is known to be.

    folder: whether it is to be one or a file; None: either. Sizes are compared each time, checksums of small files once
    a process, those of all files if `thorough`.
    """
    if folder is not None and os.path.lexists(entry) and not (entry.is_dir() if folder else entry.is_file()):
        return f"it is no {'folder' if folder else 'file'}"
    known = _read(sums_of(entry))
    if not known and entry.is_dir() and sums_of(entry).exists() and any(_files(entry)):
        return "its checksums are gone"
    if known is None:
        return "" if not sums_of(entry).exists() else "its checksums cannot be read"
    known = {name: wanted for name, wanted in known.items() if not only or name in only}
    for name, wanted in known.items():
        path = entry / name if entry.is_dir() else entry
        try:
            size = path.stat().st_size
        except OSError:
            return f"{name} is gone"
        if size not in (count for count, _ in wanted):
            return f"{name} has {size} bytes in place of {wanted[0][0]}"
    if entry in _trusted and not thorough:
        return ""
    for name, wanted in known.items():
        path = entry / name if entry.is_dir() else entry
        if (thorough or path.stat().st_size <= SMALL) and _sum(path) not in wanted:
            return f"{name} is not what was written"
    return ""


def bytes_key(entry: Path) -> str:
    """A name for what an entry of the cache holds, file by file: the same wherever it lies and however it was made.

    >>> import tempfile
    >>> folders = [Path(tempfile.mkdtemp()) for _ in range(2)]
    >>> _ = [(folder / "a.txt").write_text("one") for folder in folders]
    >>> bytes_key(folders[0]) == bytes_key(folders[1])
    True
    """
    known = _read(sums_of(entry))
    if known is None:  # of an earlier version, or no entry of the cache
        files = _files(entry) if entry.is_dir() else [entry]
        known = {str(path.relative_to(entry)) if path != entry else path.name: [_sum(path)] for path in files}
    held = {name: wanted[0][1] for name, wanted in sorted(known.items())}
    return hashlib.sha256(json.dumps(held if entry.is_dir() else [*held.values()]).encode()).hexdigest()[:16]


def forget(entry: Path) -> None:
    """An entry is made anew: what was known of it holds no longer."""
    _trusted.discard(entry)


def _read(table: Path) -> dict[str, list[Sum]] | None:
    """The sums in a file; None if there is none that can be read."""
    try:
        found = json.loads(table.read_text(encoding="utf-8"))
        return {str(name): [[int(size), str(digest)] for size, digest in sums] for name, sums in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def _files(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(at, name)
            if path.is_file() and not path.is_symlink() and name != SUMS:
                yield path


def digest(path: Path, algorithm: str = "sha256") -> str:
    """A hash of a file, SHA-256 unless another is named."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _sum(path: Path) -> Sum:
    return [path.stat().st_size, digest(path)]

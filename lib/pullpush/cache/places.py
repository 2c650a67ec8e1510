"""Where the cache is, what entries are called, and what the operating system's refusals mean for a user."""

import dataclasses
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from pullpush.errors import CacheError

HOME = "PULLPUSH_HOME"
PARTIAL = ".partial-"  # a name with this prefix is unfinished: nobody reads it, and a later builder removes it
FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)
LATER: Mapping[str, bool] = {"later": True}  # metadata of a field whose default does what was done before there was it


def home() -> Path:
    """The cache's folder: `$PULLPUSH_HOME`, else the platform's user cache; it need not exist yet."""
    named = os.environ.get(HOME)
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("pullpush")


def place(kind: str, key: str) -> Path:
    """`home()/kind/key`, which need not exist.

    Raises:
        ValueError: one of the two is more than a plain name.
    """
    for part in (kind, key):
        if not part or Path(part).name != part or part.startswith("."):
            raise ValueError(f"kind and key must be plain names, got {part!r}")
    return home() / kind / key


def content_key(content: Any, *, length: int = 16) -> str:
    """A name for `content`, the same in every process and on every machine: the start of a SHA-256 in hexadecimal.

    content: None, booleans, numbers, texts, bytes, paths, dataclasses by the fields that they are compared by, so that
        equal ones have one name, and lists, tuples and mappings of these. A field that came later is left out while it
        has its default (`metadata=LATER`), so that what was named before it keeps its name.

    Raises:
        TypeError: for anything else, since its text may change from run to run.

    >>> content_key({"epochs": 2, "tau": 0.07}) == content_key({"tau": 0.07, "epochs": 2})
    True
    """
    text = json.dumps(_plain(content), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _plain(content: Any) -> Any:
    if content is None or isinstance(content, bool | int | str):
        return content
    if isinstance(content, float):
        return {"float": content.hex()}  # exact, and nan or inf are not JSON
    if isinstance(content, bytes):
        return {"bytes": hashlib.sha256(content).hexdigest()}
    if isinstance(content, Path):
        return str(content)
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        values = {
            item.name: getattr(content, item.name)
            for item in dataclasses.fields(content)
            if item.compare and not (item.metadata == LATER and getattr(content, item.name) == item.default)
        }
        return {type(content).__name__: _plain(values)}
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    raise TypeError(f"content_key takes plain data, got {type(content).__name__}")


@contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say what to do."""
    try:
        yield
    except CacheError:
        raise
    except OSError as error:
        advice = f"set {HOME} to" if target.is_relative_to(home()) else "choose"
        # NumPy says "36 requested and 12 written" without a number where a disk is full.
        if error.errno in FULL or (error.errno is None and " requested and " in str(error)):
            raise CacheError(
                f"no space left to write {target}: free some, or {advice} a folder on another disk"
            ) from error
        place = Path(str(error.filename or target))
        if error.errno in REFUSED and (place.is_relative_to(target.parent) or target.is_relative_to(place)):
            raise CacheError(f"cannot write {target}: {advice} a folder that you may write to") from error
        if error.errno == errno.EISDIR:
            said = f"{error.filename2 or error.filename} is a folder where a file belongs: remove it"
            raise CacheError(f"cannot write {target}, since {said}") from error
        if error.errno in NO_FOLDER:
            for path in reversed(target.parents):
                if path.exists() and not path.is_dir():
                    raise CacheError(f"cannot write {target}, since {path} is a file: {advice} a folder") from error
        # Not of what a builder looks for: only of the place itself, as below /proc.
        if error.errno == errno.ENOENT and error.filename and target.is_relative_to(str(error.filename)):
            raise CacheError(f"cannot make {error.filename}: {advice} a folder that you may write to") from error
        raise


def refused(error: CacheError) -> bool:
    """Whether the operating system refused to write, as on a read-only disk."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in REFUSED


def umask() -> int:
    """The process's mask of new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

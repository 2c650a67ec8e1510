"""Where downloads, rendered worlds, features and runs are kept: written once, all of it or nothing.

Everything lies under `home()`, in `<kind>/<key>`, where the key is a hash of all that shaped the content. A folder or
file that is there is complete: it is built beside its place and moved there by one rename, under a lock, so that
neither a killed process nor two processes at once leave half of one.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock

from pullpush.errors import CacheError

HOME = "PULLPUSH_HOME"
PARTIAL = ".partial-"  # a name with this prefix is unfinished: nobody reads it, and the next builder removes it


def home() -> Path:
    """The cache's folder: `$PULLPUSH_HOME`, else the platform's user cache; it need not exist yet."""
    named = os.environ.get(HOME)
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("pullpush")


def content_key(content: Any, *, length: int = 16) -> str:
    """A name for `content`, the same in every process and on every machine: the start of a SHA-256 in hexadecimal.

    content: None, booleans, numbers, texts, bytes, paths, dataclasses (but for fields whose metadata say
        {"content": False}), and lists, tuples and mappings of these.

    Raises:
        TypeError: for anything else, since its text may change from run to run.
    """
    text = json.dumps(_plain(content), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write a file to; it takes its place when the block ends without an error.

    Raises:
        CacheError: the disk is full, or the folder cannot be written.
    """
    path = Path(path)
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
        os.close(handle)
    partial = Path(name)
    try:
        with _explained(path):
            yield partial
            partial.chmod(0o666 & ~_umask())  # mkstemp's 0600 would lock out others who share the cache
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def cached_dir(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder `home()/kind/key`, made by `build` if it is not there.

    build: is given an empty folder to fill. Of several processes that ask at once, one builds and the others wait;
    if it is killed, the next one begins anew.

    Raises:
        CacheError: the cache cannot be written or the disk is full. Errors of `build` itself pass through.
    """
    target = _place(kind, key)
    if target.is_dir():
        return target
    with _lock(target):
        if not target.is_dir():
            _remove_partials(target)
            with _explained(target):
                partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{key}-", dir=target.parent))
            try:
                with _explained(target):
                    partial.chmod(0o777 & ~_umask())
                    build(partial)
                    os.replace(partial, target)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return target


def cached_file(kind: str, name: str, build: Callable[[Path], None]) -> Path:
    """The file `home()/kind/name`, made by `build` if it is not there; see `cached_dir`.

    build: is given a path to write to.
    """
    target = _place(kind, name)
    if target.is_file():
        return target
    with _lock(target):
        if not target.is_file():
            _remove_partials(target)
            with atomic_path(target) as partial:
                build(partial)
    return target


@contextmanager
def locked(kind: str, key: str) -> Iterator[Path]:
    """Hold the lock of `home()/kind/key` and yield that path: for content that grows, such as a run being trained."""
    target = _place(kind, key)
    with _lock(target):
        yield target


def _place(kind: str, key: str) -> Path:
    for part in (kind, key):
        if not part or Path(part).name != part or part.startswith("."):
            raise ValueError(f"kind and key must be plain names, got {part!r}")
    return home() / kind / key


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.parent / f".{target.name}.lock")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _remove_partials(target: Path) -> None:
    """Remove what killed builders of this target left; the lock is held, so nobody is at work on them."""
    for left in target.parent.glob(f"{PARTIAL}{target.name}-*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CacheError(
                f"no space left to write {target}: free some, or set {HOME} to a folder on another disk"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise CacheError(f"cannot write {target}: set {HOME} to a folder that you may write to") from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
        named = [item.name for item in dataclasses.fields(content) if item.metadata.get("content", True)]
        values = {name: getattr(content, name) for name in named}
        return {type(content).__name__: _plain(values)}
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    raise TypeError(f"content_key takes plain data, got {type(content).__name__}")

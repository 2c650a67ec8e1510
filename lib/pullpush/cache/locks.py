"""One at a time: locks that say who holds them, and what killed holders left."""

import json
import os
import re
import shutil
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pullpush.cache.places import PARTIAL, explained

PATIENCE = 5.0  # seconds until a waiting process says for whom it waits
LEFT = 2 * 24 * 3600  # seconds after which what is unfinished is nobody's any more
FOREIGN = re.compile(r"\.tmp[A-Za-z0-9]{6}")  # what safetensors calls a file while it writes it

_swept: set[Path] = set()  # folders that this process has looked through


@contextmanager
def lock(target: Path) -> Iterator[None]:
    """Hold the lock of an entry; who waits longer is told once by whom it is held."""
    holder = target.with_name(f".{target.name}.holder")
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep_up(target.parent)
        one = FileLock(target.with_name(f".{target.name}.lock"))
        try:
            held = one.acquire(timeout=PATIENCE)
        except Timeout:
            warnings.warn(f"waiting for {target}: {who(holder)} is at work on it", stacklevel=4)
            held = one.acquire()
    with held, named(holder):
        yield


@contextmanager
def named(holder: Path) -> Iterator[None]:
    """Leave a word on who holds a lock, for `who`, as long as the block lasts."""
    try:
        with suppress(OSError):  # it only tells
            holder.write_text(json.dumps([socket.gethostname(), os.getpid(), time.time()]), encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            holder.unlink(missing_ok=True)


def who(holder: Path) -> str:
    """Who wrote a holder's file: "process 4711 of this machine, since 12:03:04,"."""
    try:
        host, process, since = json.loads(holder.read_text(encoding="utf-8"))
        machine = "this machine" if host == socket.gethostname() else host
        return f"process {process} of {machine}, since {time.strftime('%H:%M:%S', time.localtime(since))},"
    except (OSError, ValueError, TypeError):
        return "another process"


def tidy(folder: Path) -> None:
    """Remove what killed writers left in a folder whose lock is held, so that nobody is at work on it."""
    for left in list(folder.iterdir()) if folder.is_dir() else ():
        if is_left(left):
            remove(left)


def sweep_up(folder: Path) -> None:
    """Remove what is unfinished in a folder for days: whoever began it was killed."""
    if folder in _swept:
        return
    _swept.add(folder)
    with suppress(OSError):
        for left in folder.iterdir():
            if is_left(left) and time.time() - newest(left) > LEFT:
                remove(left)


def is_left(path: Path) -> bool:
    """Whether a name is that of something unfinished."""
    foreign = FOREIGN.fullmatch(path.name) and any(path.parent.glob("*.safetensors"))
    return path.name.startswith(PARTIAL) or bool(foreign)


def newest(path: Path) -> float:
    """When anything in a folder, or a file, was last written."""
    times = [path.lstat().st_mtime]
    for at, folders, names in os.walk(path):
        for name in (*folders, *names):
            with suppress(OSError):
                times.append(os.lstat(os.path.join(at, name)).st_mtime)
    return max(times)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that is allowed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()

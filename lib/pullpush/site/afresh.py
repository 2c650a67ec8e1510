"""A cache in which nothing was trained yet, and data, features and weights are those of the usual one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pullpush.cache import HOME, home
from pullpush.errors import CacheError

KIND = "verified"
OF_RUNS = ("runs", "scores", "teachers", "columns", "topics")  # kinds of the cache that come of training
OF_DATA = ("banks", "worlds", "features")  # others, made where there are none yet, so that they stay


@contextmanager
def afresh(name: str) -> Iterator[Path]:
    """Let `home()` be `home()/verified/<name>` for the block: links to all kinds but those that come of training.

    What was trained in a block of this name before is there again; that of other names is removed.

    Raises:
        CacheError: another process is in such a block.
    """
    usual, folder = home(), home() / KIND / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder.parent / ".lock").acquire(timeout=0)
    except Timeout:
        raise CacheError(f"another process trains in {folder.parent}: wait for it, nothing was changed") from None
    before = os.environ.get(HOME)
    with lock:
        for other in folder.parent.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)
        kinds = {path.name for path in usual.iterdir() if path.is_dir() and not path.name.startswith(".")}
        for kind in (kinds | {*OF_DATA}) - {KIND, *OF_RUNS}:
            (usual / kind).mkdir(exist_ok=True)
            if not (folder / kind).exists():
                (folder / kind).symlink_to(usual / kind, target_is_directory=True)
        os.environ[HOME] = str(folder)
        try:
            yield folder
        finally:
            if before is None:
                del os.environ[HOME]
            else:
                os.environ[HOME] = before

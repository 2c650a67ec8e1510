"""Entries: built beside their place, moved there by one rename, checked when they are opened."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from filecmp import cmp
from pathlib import Path

from pullpush.cache import sums
from pullpush.cache.locks import lock, remove, sweep_up, tidy
from pullpush.cache.places import PARTIAL, explained, place, refused, umask
from pullpush.errors import CacheError

ASIDE = ".damaged-"  # in front of the name of what was damaged and cannot be made again by itself


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write a file to; it takes its place when the block ends without an error.

    On a disk that cannot be written, what is there already may be written once more: then nothing is done.

    Raises:
        CacheError: the disk is full, or the folder cannot be written.
    """
    path = Path(path)
    try:
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep_up(path.parent)
            handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
            os.close(handle)
    except CacheError as error:
        if not refused(error) or not path.is_file():
            raise
        with _same_again(path, error) as elsewhere:
            yield elsewhere
        return
    partial = Path(name)
    try:
        with explained(path):
            yield partial
            partial.chmod(0o666 & ~umask())  # mkstemp's 0600 would lock out others who share the cache
            sums.announce(path, partial)
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def cached_dir(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder `home()/kind/key`, made by `build` if it is not there; made again, with a warning, if it is damaged.

    build: is given an empty folder to fill. Of several processes that ask at once, one builds and the others wait;
    if it is killed, the next one begins anew.

    Raises:
        CacheError: the cache cannot be written or the disk is full. Errors of `build` itself pass through.
    """
    target = place(kind, key)
    if target.is_dir() and not any(target.iterdir()):
        with suppress(OSError):
            target.rmdir()  # its files are gone
    if target.is_dir() and not sums.damage(target):
        sums.trust(target)
        return target
    with _to_make(target, folder=True) as wanted:
        if wanted:
            for left in target.parent.glob(f"{PARTIAL}{target.name}-*"):  # of killed builders: the lock is held
                shutil.rmtree(left, ignore_errors=True)
            with explained(target):
                partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{key}-", dir=target.parent))
            old = partial.with_name(f"{partial.name}.old")
            try:
                with explained(target):
                    partial.chmod(0o777 & ~umask())
                    build(partial)
                    sums.write_folder(partial)
                    if target.is_dir():
                        os.replace(target, old)
                    os.replace(partial, target)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
                shutil.rmtree(old, ignore_errors=True)
    sums.trust(target)
    return target


def cached_file(kind: str, name: str, build: Callable[[Path], None]) -> Path:
    """The file `home()/kind/name`, made by `build` if it is not there or damaged; see `cached_dir`.

    build: is given a path to write to.
    """
    target = place(kind, name)
    if target.is_file() and not sums.damage(target):
        sums.trust(target)
        return target
    with _to_make(target, folder=False) as wanted:
        if wanted:
            with atomic_path(target) as partial:
                build(partial)
    sums.trust(target)
    return target


@contextmanager
def locked(kind: str, key: str, *, again: Sequence[str] = ()) -> Iterator[Path]:
    """Hold the lock of `home()/kind/key` and yield that path: for content that grows, such as a run being trained.

    What is damaged is put aside, with a warning, and begins anew, all of it; of files that who holds the lock writes
    `again` from the others, these alone. On a disk that cannot be written, what is there can
    be read without the lock.
    """
    target = place(kind, key)
    with ExitStack() as stack:
        why = sums.damage(target, folder=True)
        try:
            stack.enter_context(lock(target))
        except CacheError as error:
            if not refused(error) or not target.exists():
                raise
            if why:
                raise _damaged(target, why) from error
            yield target
            return
        tidy(target)
        for path in (target / name for name in again if sums.damage(target, only=[name])):
            remove(path)
            sums.leave_out(path)
        if why := sums.damage(target, folder=True):
            aside = _put_aside(target)
            warnings.warn(f"{target} is damaged ({why}): put aside as {aside.name}, and begun anew", stacklevel=3)
        yield target
        if target.is_dir():
            sums.trust(target)


def _put_aside(target: Path) -> Path:
    aside = target.with_name(f"{ASIDE}{target.name}")
    remove(aside)
    os.replace(target, aside)
    sums.forget(target)
    return aside


@contextmanager
def _to_make(target: Path, *, folder: bool) -> Iterator[bool]:
    """Hold the lock of an entry that was missing or damaged, and say whether it still is."""
    why = sums.damage(target, folder=folder) if os.path.lexists(target) else ""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock(target))
        except CacheError as error:
            if why and refused(error):
                raise _damaged(target, why) from error
            raise
        if os.path.lexists(target) and (why := sums.damage(target, folder=folder)):
            warnings.warn(f"{target} is damaged ({why}): it is made again", stacklevel=4)
            sums.forget(target)
            if target.is_dir() != folder:
                _put_aside(target)
        yield bool(why) or not target.exists()


def _damaged(target: Path, why: str) -> CacheError:
    return CacheError(
        f"{target} is damaged ({why}) and cannot be made again on a read-only disk: let `pullpush doctor --repair` "
        "remove it where it can be written, or set PULLPUSH_HOME to a folder that you may write to"
    )


@contextmanager
def _same_again(path: Path, error: CacheError) -> Iterator[Path]:
    """A path elsewhere to write to; what is written must be what `path` holds already, else `error` is raised."""
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / path.name
        again.touch()
        yield again
        if not cmp(again, path, shallow=False):
            raise error

"""Where the book is, and where its results go: a clone, or the book that travels in the wheel."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pullpush.errors import CacheError, DataNotFoundError, PullPushError

DEFAULT = "quick"  # the profile
SUFFIXES = (".yaml", ".yml")  # of a profile of one's own, and of sweeps
CHECKOUT = Path(__file__).resolve().parents[3]  # of an editable install
PACKAGED = Path(__file__).resolve().parents[1] / "_root"  # in the wheel, see pyproject.toml


def find_root() -> Path:
    """The book's root folder, absolute: the one that holds `book/_toc.yml`.

    `$PULLPUSH_BOOK` decides if it is set; otherwise the current folder and those above it are tried, then the
    checkout that the package was installed from, then the book that was installed with the package.

    Raises:
        DataNotFoundError: there is no book in any of these places.
    """
    named = os.environ.get("PULLPUSH_BOOK")
    if named:
        root = Path(named).expanduser().resolve()
        if not _is_book(root):
            raise DataNotFoundError(f"PULLPUSH_BOOK={named} has no book/_toc.yml: point it to a clone of the book")
        return root
    current = Path.cwd().resolve()
    for folder in (current, *current.parents, CHECKOUT, PACKAGED):
        if _is_book(folder):
            return folder
    raise DataNotFoundError(
        f"no book (a folder with book/_toc.yml) at or above {current}: go into a clone of the book, "
        "or set PULLPUSH_BOOK to one"
    )


def is_packaged(root: Path | None = None) -> bool:
    """Whether the book is the one that was installed with the package, which lacks all that was computed."""
    return (root or find_root()) == PACKAGED


def workplace(root: Path | None = None) -> Path:
    """Where `executed/` and `_build/` go: the book's root, or the current folder if the book is installed."""
    root = root or find_root()
    return Path.cwd().resolve() if is_packaged(root) else root


@contextmanager
def alone(lock: Path, refusal: PullPushError) -> Iterator[None]:
    """Hold a lock for the block, in a folder that is made if it is not there; `refusal` where another process does."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise refusal from None
    except OSError as error:
        raise CacheError(f"cannot write {lock.parent}: {error}") from error
    with held:
        yield


def _is_book(folder: Path) -> bool:
    return (folder / "book" / "_toc.yml").is_file()

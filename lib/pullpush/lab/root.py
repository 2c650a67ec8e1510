"""Where the book is: the folder that holds `book/_toc.yml`, `executed/` and `_build/`."""

from __future__ import annotations

import os
from pathlib import Path

from pullpush.errors import DataNotFoundError


def find_root() -> Path:
    """The book's root folder, absolute.

    `$PULLPUSH_BOOK` decides if it is set; otherwise the current folder and those above it are tried, then the
    checkout that the package was installed from.

    Raises:
        DataNotFoundError: there is no book in any of these places.
    """
    named = os.environ.get("PULLPUSH_BOOK")
    if named:
        root = Path(named).expanduser().resolve()
        if not _is_book(root):
            raise DataNotFoundError(f"PULLPUSH_BOOK={named} has no book/_toc.yml: point it to a clone of the book")
        return root
    here = Path.cwd().resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if _is_book(folder):
            return folder
    raise DataNotFoundError(
        f"no book (a folder with book/_toc.yml) at or above {here}: go into a clone of the book, "
        "or set PULLPUSH_BOOK to one"
    )


def _is_book(folder: Path) -> bool:
    return (folder / "book" / "_toc.yml").is_file()

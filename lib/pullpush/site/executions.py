"""What executed notebooks say of themselves: where they stand, how long they took, whether their page has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat

import pullpush
from pullpush.lab.gaps import MARK
from pullpush.lab.profiles import Profile
from pullpush.lab.root import workplace
from pullpush.site import chapters
from pullpush.site.chapters import Chapter

LIBRARY = Path(pullpush.__file__).parent
READ = ("claims", "measured", "paper-tables", "trunks")  # what pages read of the book's folder


def place(root: Path, profile: str, *, published: bool = False) -> Path:
    """The folder of a profile's executions: of this clone's own, or of those that the maintainers publish."""
    executed = workplace(root) / "executed"
    return executed / profile if published else executed / "local" / profile


def last_time(root: Path, name: str, profile: str) -> float | None:
    """The seconds that a chapter took when it was last executed here, else when it was published; None if neither."""
    mine, published = (seconds(place(root, profile, published=p) / f"{name}.ipynb") for p in (False, True))
    return published if mine is None else mine


def seconds(notebook: Path) -> float | None:
    """The seconds that an execution took; None if there is none."""
    return _told(notebook).get("seconds") if notebook.is_file() else None


def describe(notebook: Path) -> dict[str, Any]:
    """What an executed notebook says of itself: chapter, profile, parameters, source_hash, seconds, version."""
    return dict(nbformat.read(notebook, as_version=4).metadata.get("pullpush", {}))


def gaps_of(notebook: Path) -> list[tuple[str, bool]]:
    """What an executed notebook says that it could not measure, and whether the library gave the reason."""
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ()) if MARK in output.get("metadata", {})]
    return [(output.data["text/markdown"], output.metadata[MARK]["foreseen"]) for output in outputs]


def why_stale(notebook: Path, chapter: Chapter) -> str | None:
    """Why an executed notebook is not one of the chapter as it is written, with its defaults; None if it is."""
    if not notebook.is_file():
        return f"{chapter.name} has not been run: there is no {notebook}"
    made = _told(notebook)
    if not made:
        return f"{notebook} cannot be read as an execution of {chapter.name}"
    if made.get("source_hash") != chapters.source_hash(chapter):
        return f"{chapter.name} has changed since {notebook} was made"
    defaults = chapters.parameters(chapter) | {"profile": made["profile"]}
    changed = [f"{k}={v!r}" for k, v in made["parameters"].items() if v != defaults.get(k)]
    if changed:
        return f"{notebook} was made with {', '.join(changed)}, which are not the defaults of {chapter.name}"
    return None


def is_current(notebook: Path, chapter: Chapter, settings: Profile) -> bool:
    """Whether a chapter need not be run again: nothing that it may read was written since, neither by us nor by git.

    Of data of one's own it is not known whether they have changed: False.
    """
    if settings.file or why_stale(notebook, chapter):
        return False
    folders = [LIBRARY, *(chapter.path.parent / name for name in READ)]
    files = (file for folder in folders for file in folder.rglob("*.*") if file.suffix != ".pyc")
    made = notebook.stat().st_mtime
    return not any(file.is_file() and file.stat().st_mtime > made for file in files)


def _told(notebook: Path) -> dict[str, Any]:
    """What a notebook says of itself; empty if it was cut off or is none of ours."""
    try:
        return describe(notebook)
    except (ValueError, TypeError, AttributeError, nbformat.ValidationError):
        return {}

"""Executed notebooks: where they stand, what they say of themselves, and how they become fit for a page."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

import pullpush
from pullpush.lab.gaps import MARK
from pullpush.lab.profiles import Profile
from pullpush.lab.root import workplace
from pullpush.show.markup import compress_png
from pullpush.site import chapters
from pullpush.site.chapters import Chapter

WIDGET = "application/vnd.jupyter.widget-view+json"
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
    return describe(notebook).get("seconds") if notebook.is_file() else None


def describe(notebook: Path) -> dict[str, Any]:
    """What an executed notebook says of itself: chapter, profile, parameters, source_hash, seconds, version; empty if
    it was cut off or is none of ours.
    """
    try:
        return dict(nbformat.read(notebook, as_version=4).metadata.get("pullpush", {}))
    except (ValueError, TypeError, AttributeError, nbformat.ValidationError):
        return {}


def shown_html(notebook: Path) -> Iterator[str]:
    """All HTML that the cells of a notebook have shown."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/html", ""))


def gaps_of(notebook: Path) -> list[tuple[str, bool]]:
    """What an executed notebook says that these data could not give, and whether the library gave the reason; not what
    takes long and was not kept, which other data or time would give.
    """
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ()) if MARK in output.get("metadata", {})]
    marks = [(output.data["text/markdown"], output.metadata[MARK]) for output in outputs]
    return [(text, mark["foreseen"]) for text, mark in marks if not mark["not kept"]]


def why_stale(notebook: Path, chapter: Chapter) -> str | None:
    """Why an executed notebook is not one of the chapter as it is written, with its defaults; None if it is."""
    if not notebook.is_file():
        return f"{chapter.name} has not been run: there is no {notebook}"
    made = describe(notebook)
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


def publishable(path: Path, about: dict[str, Any]) -> str:
    """Rewrite the executed notebook at `path` in place for publishing; returns what went to stderr.

    Taken out: stderr, widgets (a page has no kernel behind it), and papermill's notes, which hold times and the
    machine's paths. Figures get a palette. `about` becomes `metadata.pullpush`.
    """
    notebook = nbformat.read(path, as_version=4)
    stderr = []
    for position, cell in enumerate(notebook.cells):
        cell.id = f"cell-{position:03d}"  # random ids would change the file at every run
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            stderr += [o.text for o in cell.outputs if _is_stderr(o)]
            cell.outputs = [_smaller(o) for o in cell.outputs if not _is_stderr(o) and WIDGET not in o.get("data", {})]
    for noise in ("papermill", "widgets"):
        notebook.metadata.pop(noise, None)
    notebook.metadata.pullpush = about
    partial = path.with_suffix(".part")
    nbformat.write(notebook, partial)
    os.replace(partial, path)
    return "".join(stderr)


def _is_stderr(output: NotebookNode) -> bool:
    return output.output_type == "stream" and output.name == "stderr"


def _smaller(output: NotebookNode) -> NotebookNode:
    figure = output.get("data", {}).get("image/png")
    if figure:
        output.data["image/png"] = base64.b64encode(compress_png(base64.b64decode(figure))).decode("ascii")
    return output

"""The chapters: which there are, what they can be told, and what an execution must match.

A chapter is a Markdown notebook `book/NAME.md` with a line in `book/_toc.yml`; its first code cell tagged
`parameters` assigns literals, and the type of each is the type that the parameter takes.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import yaml
from nbformat import NotebookNode
from pydantic import ConfigDict, TypeAdapter

from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError, unknown

PARAMETERS_TAG = "parameters"
LAX = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class ParameterError(PullPushError, ValueError):
    """A parameter's value does not fit its type, or a parameters cell cannot be read."""


@dataclass(frozen=True)
class Chapter:
    """A notebook of the book: its name and its Markdown source."""

    name: str
    path: Path


def chapters(root: Path) -> tuple[Chapter, ...]:
    """The book's chapters in reading order, from `book/_toc.yml`; plain pages without code are left out.

    Raises:
        DataNotFoundError: the table of contents names a page that is not there.
    """
    toc = root / "book" / "_toc.yml"
    found = []
    for name in _pages(yaml.safe_load(toc.read_text(encoding="utf-8"))):
        path = root / "book" / f"{name}.md"
        if not path.is_file():
            raise DataNotFoundError(f"{toc} names {name!r}, but there is no {path}: write it or take the line out")
        if "kernelspec" in jupytext.read(path).metadata:
            found.append(Chapter(name, path))
    return tuple(found)


def find(root: Path, name: str) -> Chapter:
    """The chapter called `name`.

    Raises:
        UnknownNameError: no such chapter; the message gives the nearest names.
    """
    by_name = {chapter.name: chapter for chapter in chapters(root)}
    if name not in by_name:
        raise unknown("chapter", name, by_name)
    return by_name[name]


def read(chapter: Chapter) -> NotebookNode:
    """The chapter as a notebook without outputs."""
    return jupytext.read(chapter.path)


def parameters(chapter: Chapter) -> dict[str, Any]:
    """The chapter's parameters and their defaults, in the order in which its `parameters` cell assigns them.

    Raises:
        ParameterError: the cell assigns something that is not a literal.
    """
    for cell in read(chapter).cells:
        if cell.cell_type == "code" and PARAMETERS_TAG in cell.metadata.get("tags", []):
            return dict(_assignments(chapter, cell.source))
    return {}


def check_parameters(chapter: Chapter, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` in the types of the chapter's defaults; texts, as the command line gives them, are converted.

    Raises:
        UnknownNameError: the chapter has no such parameter.
        ParameterError: a value does not fit.
    """
    defaults = parameters(chapter)
    for name in values:
        if name not in defaults:
            error = unknown("parameter", name, defaults)
            raise UnknownNameError(f"chapter {chapter.name}: {error}")
    return {name: _coerce(name, value, defaults[name]) for name, value in values.items()}


def source_hash(chapter: Chapter) -> str:
    """SHA-256 of the chapter's cells: kind, tags and source. The jupytext header does not count."""
    cells = [[c.cell_type, sorted(c.metadata.get("tags", [])), c.source.strip()] for c in read(chapter).cells]
    return hashlib.sha256(json.dumps(cells, ensure_ascii=False).encode()).hexdigest()


def _pages(entry: Mapping[str, Any]) -> Iterator[str]:
    for key in ("root", "file"):
        if key in entry:
            yield str(entry[key]).removesuffix(".md")
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key) or []:
            yield from _pages(child)


def _assignments(chapter: Chapter, source: str) -> Iterator[tuple[str, Any]]:
    for line in ast.parse(source).body:
        try:
            assignment: Any = line  # anything else lacks what is asked of it
            (target,) = [assignment.target] if isinstance(line, ast.AnnAssign) else assignment.targets
            yield target.id, ast.literal_eval(assignment.value)
        except (AttributeError, ValueError, TypeError) as error:
            raise ParameterError(
                f"{chapter.path}: the parameters cell may only assign literals (name = value), "
                f"got {ast.unparse(line)!r}"
            ) from error


def _coerce(name: str, value: Any, default: Any) -> Any:
    """A value in the type of the default; what is no text, number or truth value is YAML on the command line."""
    kind = type(default)
    try:
        if kind in TYPE_NAMES:
            if isinstance(value, bool) and kind in (int, float):
                raise ValueError(value)
            return TypeAdapter(kind, config=LAX).validate_python(value)
        given = yaml.safe_load(value) if isinstance(value, str) else value
        if kind is type(None) or isinstance(given, kind):
            return given
        if kind is tuple and isinstance(given, list):
            return tuple(given)
    except (ValueError, yaml.YAMLError):
        pass
    raise ParameterError(f"parameter {name!r} must be {TYPE_NAMES.get(kind, f'a {kind.__name__}')}, got {value!r}")

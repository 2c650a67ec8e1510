"""A sweep file: a grid of parameters over one chapter, each point a cell with a folder named by all that shapes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.lab import profiles
from pullpush.lab.profiles import Profile
from pullpush.lab.root import find_root, workplace
from pullpush.settings import check_folder, check_setting
from pullpush.site import chapters
from pullpush.site.chapters import Chapter

KEYS = ("chapter", "profile", "grid", "fixed", "out")


class SweepError(PullPushError, ValueError):
    """A sweep file that cannot be read, or an output folder that another sweep is using."""


@dataclass(frozen=True)
class Cell:
    """One point of the grid."""

    chapter: str
    profile: str  # a name, or the path of a file
    parameters: dict[str, Any]
    out: str  # its own folder, called by its key
    failed: str
    root: str

    @property
    def notebook(self) -> Path:
        """Where the executed notebook stands once the cell is finished."""
        return Path(self.out) / f"{self.chapter}.ipynb"

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())


def read(path: Path, *, root: Path | None = None) -> tuple[list[Cell], Path]:
    """The cells of a sweep file, and the folder that it writes to.

    The file is YAML: `chapter`; `grid`, lists of values by parameter; and, if wanted, `profile` (what `--profile`
    takes, default quick), `fixed`, parameters that all cells share, and `out` (default
    `executed/sweeps/<name of the file>`, relative to the book's root).

    Raises:
        DataNotFoundError: no such file.
        SweepError: not the form above.
        UnknownNameError, ParameterError: names or values that the chapter does not take.
    """
    root = root or find_root()
    plan = _plan(path)
    chapter = chapters.find(root, plan["chapter"])
    profile = profiles.profile(plan.get("profile", profiles.DEFAULT))
    grid, fixed = _grid(path, plan["grid"]), dict(plan.get("fixed") or {})
    if both := sorted(set(grid) & set(fixed)):
        raise SweepError(f"{path}: {', '.join(both)} is in grid and in fixed: keep one")
    out = workplace(root) / plan.get("out", Path("executed") / "sweeps" / path.stem)
    check_folder(out, f"{path}: out")
    named = str(profile.file or profile.name)
    cells = []
    for values in product(*grid.values()):
        parameters = chapters.check_parameters(chapter, fixed | dict(zip(grid, values, strict=True)))
        key = key_of(identity(chapter, profile, parameters))
        cells.append(
            Cell(chapter.name, named, parameters, str(out / "cells" / key), str(out / "failed" / key), str(root))
        )
    return list({cell.out: cell for cell in cells}.values()), out


def _plan(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataNotFoundError(f"no sweep file {path}")
    try:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SweepError(f"{path} is not YAML: {error}") from error
    if not isinstance(plan, dict):
        raise SweepError(f"{path} must be a mapping with chapter and grid")
    for key in plan:
        if key not in KEYS:
            raise unknown("key of a sweep file", str(key), KEYS)
    for key in ("chapter", "profile", "out"):
        check_setting(key, plan.get(key, ""), str, of=str(path))
    check_setting("fixed", plan.get("fixed"), dict[str, Any] | None, of=str(path))
    if missing := [key for key in ("chapter", "grid") if key not in plan]:
        raise SweepError(f"{path} lacks {' and '.join(missing)}")
    return plan


def _grid(path: Path, grid: Any) -> dict[str, list[Any]]:
    if not isinstance(grid, dict) or not grid:
        raise SweepError(f"{path}: grid must map parameters to lists of values")
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise SweepError(f"{path}: grid.{name} must be a list with at least one value, got {values!r}")
    return grid


def identity(chapter: Chapter, profile: Profile, parameters: Mapping[str, Any]) -> list[Any]:
    """All that a cell's results depend on; a cell with another identity is another cell."""
    size = {item.name: getattr(profile, item.name) for item in fields(profile) if item.name not in ("about", "file")}
    return [chapters.source_hash(chapter), size, dict(parameters)]


def key_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=_plain).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """What JSON does not know, in its terms."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple | set | frozenset | range) else str(value)

"""A grid of parameters over one chapter, in parallel processes, resumable.

Each point is a cell with a folder that is named by all that shapes it. A cell is finished when its notebook is there,
and is never run twice; a changed chapter is another cell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from pullpush.cache import content_key
from pullpush.cache.locks import named, who
from pullpush.lab import profiles
from pullpush.lab.profiles import Profile
from pullpush.lab.root import alone, find_root, workplace
from pullpush.lab.session import RESULTS
from pullpush.settings import check_fields, check_folder, read_yaml
from pullpush.site import chapters
from pullpush.site.chapters import Chapter
from pullpush.site.run import run
from pullpush.site.workers import SweepError, Swept, Tell, work_through


@dataclass(frozen=True)
class Grid:
    """What a sweep file says.

    chapter: its name; grid: lists of values by parameter; profile: what `--profile` takes; fixed: parameters that all
    cells share; out: a folder, by default `executed/sweeps/<name of the file>`, relative to the book's root.
    """

    chapter: str
    grid: dict[str, list[Any]]
    profile: str = profiles.DEFAULT
    fixed: dict[str, Any] = field(default_factory=dict)
    out: str = ""


@dataclass(frozen=True)
class Cell:
    """One point of the grid. profile: as for `run`; out: its folder, called by its key; failed: that of its error."""

    chapter: str
    profile: str
    parameters: dict[str, Any]
    out: Path
    failed: Path
    root: Path

    @property
    def notebook(self) -> Path:
        """Where the executed notebook stands once the cell is finished."""
        return self.out / f"{self.chapter}.ipynb"

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())

    def run(self, threads: int = 0) -> None:
        """Execute the chapter; SweepError if it is no longer what the key says."""
        chapter, profile = chapters.find(self.root, self.chapter), profiles.profile(self.profile)
        if key_of(chapter, profile, self.parameters) != self.out.name:
            raise SweepError(f"{chapter.name} or its profile changed after this sweep had begun: run the sweep again")
        places = {"out": self.out, "failed": self.failed, "root": self.root}
        run(chapter.name, profile=self.profile, parameters=self.parameters, threads=threads, **places)


def sweep(
    path: Path,
    *,
    jobs: int = 2,
    dask: str = "",
    root: Path | None = None,
    report: Tell = lambda line: None,
    watch: Tell = lambda state: None,
) -> Swept:
    """Run the cells of a sweep file that are not finished yet, and gather the tables of all that are.

    Args:
        path: the sweep file.
        jobs: processes at once; the cores are shared out among them.
        dask: address of a Dask scheduler, whose workers run the cells instead.
        root: the book's root.
        report, watch: see `work_through`.

    Raises:
        SweepError: another process is running this sweep; or see `read` and `work_through`.
        KeyboardInterrupt: Ctrl-C or SIGTERM; finished cells are kept.
    """
    cells, out = read(path, root=root)
    holder = out / ".holder"
    refusal = SweepError(
        f"another sweep is writing to {out} ({who(holder)}): wait for it, or give this one another `out`"
    )
    with alone(out / ".lock", refusal), named(holder):
        there = [cell for cell in cells if cell.notebook.is_file()]
        todo = {cell.out.name: cell for cell in cells if cell not in there}
        for cell in there:
            report(f"finished before: {cell}")
        threads = max(1, (os.cpu_count() or 1) // max(1, jobs))
        ran, failed = work_through(
            {key: partial(cell.run, threads) for key, cell in todo.items()},
            jobs=jobs,
            dask=dask,
            labels={key: str(cell) for key, cell in todo.items()},
            is_there=lambda key: todo[key].notebook.is_file(),
            before=len(there),
            total=len(cells),
            report=report,
            watch=watch,
        )
        tables = _gather([cell for cell in cells if cell.notebook.is_file()], out)
    return Swept(tuple(ran), tuple(map(str, there)), tuple(failed), tables)


def read(path: Path, *, root: Path | None = None) -> tuple[list[Cell], Path]:
    """The cells of a sweep file, which is a `Grid` in YAML, and the folder that it writes to.

    Raises:
        DataNotFoundError: no such file.
        SettingError, SweepError: it is no `Grid`.
        UnknownNameError, ParameterError: names or values that the chapter does not take.
    """
    root = root or find_root()
    told = read_yaml(path)
    check_fields(told, of=str(path), kind=Grid)
    if missing := [key for key in ("chapter", "grid") if not told.get(key)]:
        raise SweepError(f"{path} lacks {' and '.join(missing)}")
    plan = Grid(**told)
    if both := sorted(plan.grid.keys() & plan.fixed.keys()):
        raise SweepError(f"{path}: {', '.join(both)} is in grid and in fixed: keep one")
    if empty := [name for name, values in plan.grid.items() if not values]:
        raise SweepError(f"{path}: grid.{empty[0]} must be a list with at least one value")
    chapter, profile = chapters.find(root, plan.chapter), profiles.profile(plan.profile)
    out = workplace(root) / (plan.out or Path("executed") / "sweeps" / path.stem)
    check_folder(out, f"{path}: out")
    cells = {}
    for values in product(*plan.grid.values()):
        parameters = chapters.check_parameters(chapter, plan.fixed | dict(zip(plan.grid, values, strict=True)))
        key = key_of(chapter, profile, parameters)
        cells[key] = Cell(chapter.name, profile.source, parameters, out / "cells" / key, out / "failed" / key, root)
    return list(cells.values()), out


def key_of(chapter: Chapter, profile: Profile, parameters: Mapping[str, Any]) -> str:
    """A name for all that a cell's results depend on."""
    sizes = [profile.content, profile.listening.content, profile.points]
    return content_key([chapters.source_hash(chapter), sizes, repr(dict(parameters))], length=12)


def _gather(cells: list[Cell], out: Path) -> dict[str, Path]:
    """Put the cells' tables of one name under each other, the parameters in front, into `out/<name>.csv`."""
    found: dict[str, list[pd.DataFrame]] = {}
    for cell in cells:  # in the order of the grid: the table is the same whatever ran when
        for path in sorted(cell.out.glob(f"{cell.chapter}.*.csv")):
            table = pd.read_csv(path)
            for column, value in reversed(cell.parameters.items()):
                if column not in table:  # a chapter may write its own, such as one row a seed
                    table.insert(0, column, str(value) if isinstance(value, list | tuple | dict) else value)
            found.setdefault(path.name.removeprefix(f"{cell.chapter}.").removesuffix(".csv"), []).append(table)
    written = {}
    for name in sorted(found, key=lambda name: (name != RESULTS, name)):
        written[name] = out / f"{name}.csv"
        partial = out / f".{name}.part"
        pd.concat(found[name], ignore_index=True).to_csv(partial, index=False, lineterminator="\n")
        os.replace(partial, written[name])
    return written

"""A grid of parameters over one chapter, in parallel processes, resumable.

Each cell of the grid has a folder named by the content of its parameters and of the chapter's source. A cell is
finished when its notebook is there, and is never run twice; a changed chapter is another cell.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from filelock import FileLock, Timeout

from pullpush.book import chapters
from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.lab import profiles
from pullpush.lab.root import find_root
from pullpush.lab.session import RESULTS

KEYS = ("chapter", "profile", "grid", "fixed", "out")


class SweepError(PullPushError, ValueError):
    """A sweep file that cannot be read, or an output folder that another sweep is using."""


@dataclass(frozen=True)
class Cell:
    """One point of the grid."""

    chapter: str
    profile: str
    parameters: dict[str, Any]
    out: str  # its own folder
    failed: str
    root: str

    @property
    def notebook(self) -> Path:
        """Where the executed notebook stands once the cell is finished."""
        return Path(self.out) / f"{self.chapter}.ipynb"

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class Failure:
    """A cell that failed and why; the message names the notebook that shows the error."""

    cell: Cell
    message: str


@dataclass(frozen=True)
class Sweep:
    """What a sweep did: cells that it ran, that were there already, that failed; the gathered tables by name."""

    ran: tuple[Cell, ...]
    skipped: tuple[Cell, ...]
    failed: tuple[Failure, ...]
    tables: dict[str, Path]


def read(path: Path, *, root: Path | None = None) -> tuple[list[Cell], Path]:
    """The cells of a sweep file, and the folder that it writes to.

    The file is YAML: `chapter`; `grid`, lists of values by parameter; and, if wanted, `profile` (default quick),
    `fixed`, parameters that all cells share, and `out` (default `executed/sweeps/<name of the file>`, relative to
    the book's root).

    Raises:
        DataNotFoundError: no such file.
        SweepError: not the form above.
        UnknownNameError, ParameterError: names or values that the chapter does not take.
    """
    root = root or find_root()
    plan = _plan(path)
    chapter = chapters.find(root, plan["chapter"])
    profile = profiles.profile(plan.get("profile", profiles.DEFAULT)).name
    grid, fixed = _grid(path, plan["grid"]), dict(plan.get("fixed") or {})
    if both := sorted(set(grid) & set(fixed)):
        raise SweepError(f"{path}: {', '.join(both)} is in grid and in fixed: keep one")
    out = root / plan.get("out", Path("executed") / "sweeps" / path.stem)
    source = chapters.source_hash(chapter)
    cells = []
    for values in product(*grid.values()):
        parameters = chapters.check_parameters(chapter, fixed | dict(zip(grid, values, strict=True)))
        key = _key([source, profile, parameters])
        cells.append(
            Cell(chapter.name, profile, parameters, str(out / "cells" / key), str(out / "failed" / key), str(root))
        )
    return list({cell.out: cell for cell in cells}.values()), out


def sweep(
    path: Path,
    *,
    jobs: int = 2,
    root: Path | None = None,
    executor: Executor | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Run the cells of a sweep file that are not finished yet, and gather the tables of all that are.

    Args:
        path: the sweep file.
        jobs: processes at once; the cores are shared out among them.
        root: the book's root.
        executor: where cells run instead, for example `dask.distributed.Client(...).get_executor()`.
        report: told one line for every cell.

    Raises:
        SweepError: another process is running this sweep; or see `read`.
    """
    if jobs < 1:
        raise SweepError(f"jobs must be at least 1, got {jobs}")
    cells, out = read(path, root=root)
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        skipped = [cell for cell in cells if cell.notebook.is_file()]
        todo = [cell for cell in cells if not cell.notebook.is_file()]
        for cell in skipped:
            report(f"finished before: {cell}")
        threads = max(1, (os.cpu_count() or 1) // jobs)
        with executor or ThreadPoolExecutor(jobs) as pool:
            pending = {pool.submit(run_cell, cell, threads): cell for cell in todo}
            failures = list(_failures(pending, report))
        failed = {failure.cell.out for failure in failures}
        ran = [cell for cell in todo if cell.out not in failed]
        # The order of the grid, not of finishing: the table is the same whatever ran when.
        failures.sort(key=lambda failure: cells.index(failure.cell))
        tables = _gather([cell for cell in cells if cell.out not in failed], out)
    return Sweep(tuple(ran), tuple(skipped), tuple(failures), tables)


def run_cell(cell: Cell, threads: int = 1) -> str:
    """Run a cell in a process of its own; returns what went wrong, empty if nothing did."""
    program = "import json, sys; from pullpush.book.sweep import _run; _run(**json.load(sys.stdin))"
    order = {"name": cell.chapter, "profile": cell.profile, "parameters": cell.parameters}
    order |= {"out": cell.out, "failed": cell.failed, "root": cell.root}
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        env=os.environ | counts,
        check=False,
    )
    if done.returncode < 0:
        return f"its process was killed by signal {-done.returncode}"
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _run(*, out: str, failed: str, root: str, **order: Any) -> None:
    from pullpush.book.run import run

    try:
        run(**order, out=Path(out), failed=Path(failed), root=Path(root))
    except PullPushError as error:
        sys.exit(str(error))


def _failures(pending: Mapping[Future[str], Cell], report: Callable[[str], None]) -> Iterator[Failure]:
    for future in as_completed(pending):
        cell = pending[future]
        message = str(future.exception()) if future.exception() else future.result()
        report(f"{'FAILED' if message else 'finished'}: {cell}")
        if message:
            yield Failure(cell, message)


def _gather(cells: list[Cell], out: Path) -> dict[str, Path]:
    """Put the cells' tables of one name under each other, the parameters in front, into `out/<name>.csv`."""
    found: dict[str, list[pd.DataFrame]] = {}
    for cell in cells:
        for path in sorted(Path(cell.out).glob(f"{cell.chapter}.*.csv")):
            name = path.name.removeprefix(f"{cell.chapter}.").removesuffix(".csv")
            table = pd.read_csv(path)
            for column, value in reversed(cell.parameters.items()):
                if column not in table:  # a chapter may write its own, such as one row a seed
                    table.insert(0, column, str(value) if isinstance(value, list | tuple | dict) else value)
            found.setdefault(name, []).append(table)
    written = {}
    for name in sorted(found, key=lambda name: (name != RESULTS, name)):
        written[name] = out / f"{name}.csv"
        partial = out / f".{name}.part"
        pd.concat(found[name], ignore_index=True).to_csv(partial, index=False, lineterminator="\n")
        os.replace(partial, written[name])
    return written


def _plan(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataNotFoundError(f"no sweep file {path}")
    try:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise SweepError(f"{path} is not YAML: {error}") from error
    if not isinstance(plan, dict):
        raise SweepError(f"{path} must be a mapping with chapter and grid")
    for key in plan:
        if key not in KEYS:
            raise unknown("key of a sweep file", key, KEYS)
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


def _key(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=list).encode()).hexdigest()[:12]


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    try:
        with FileLock(out / ".lock", timeout=0):
            yield
    except Timeout:
        raise SweepError(f"another sweep is writing to {out}: wait for it, or give this one another `out`") from None

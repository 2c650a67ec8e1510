"""A grid of parameters over one chapter, in parallel processes, resumable.

Each cell of the grid has a folder named by the content of its parameters, of its profile and of the chapter's source.
A cell is finished when its notebook is there, and is never run twice; a changed chapter is another cell. Each runs in a
process of its own, which ends with the one that started it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from filelock import FileLock, Timeout

from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.lab import profiles
from pullpush.lab.profiles import Profile
from pullpush.lab.root import find_root
from pullpush.site import chapters, run, status
from pullpush.site.chapters import Chapter

KEYS = ("chapter", "profile", "grid", "fixed", "out")
_running: set[subprocess.Popen[str]] = set()  # the processes of the cells that this process runs


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
    out = root / plan.get("out", Path("executed") / "sweeps" / path.stem)
    named = str(profile.file or profile.name)
    cells = []
    for values in product(*grid.values()):
        parameters = chapters.check_parameters(chapter, fixed | dict(zip(grid, values, strict=True)))
        key = _key(_identity(chapter, profile, parameters))
        cells.append(
            Cell(chapter.name, named, parameters, str(out / "cells" / key), str(out / "failed" / key), str(root))
        )
    return list({cell.out: cell for cell in cells}.values()), out


def sweep(
    path: Path,
    *,
    jobs: int = 2,
    root: Path | None = None,
    executor: Executor | None = None,
    report: Callable[[str], None] = lambda line: None,
    watch: Callable[[str], None] = lambda state: None,
) -> Sweep:
    """Run the cells of a sweep file that are not finished yet, and gather the tables of all that are.

    Args:
        path: the sweep file.
        jobs: processes at once; the cores are shared out among them.
        root: the book's root.
        executor: where cells run instead, for example `dask.distributed.Client(...).get_executor()`.
        report: told one line for every cell.
        watch: told how many cells are finished and how far the others are, whenever that changes.

    Raises:
        SweepError: another process is running this sweep; or see `read`.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the processes have been ended (an `executor` ends what it runs by itself),
            finished cells are kept.
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
        progress = _Progress(len(cells), len(skipped), watch)
        with executor or ThreadPoolExecutor(jobs) as pool:
            pending: dict[Future[str], Cell] = {}
            try:
                for cell in todo:
                    further = {} if executor else {"watch": partial(progress.reached, cell)}
                    pending[pool.submit(run_cell, cell, threads, **further)] = cell
                failures = list(_failures(pending, report, progress))
            except BaseException:
                _stop(pool, pending)
                raise
        failed = {failure.cell.out for failure in failures}
        ran = [cell for cell in todo if cell.out not in failed]
        # The order of the grid, not of finishing: the table is the same whatever ran when.
        failures.sort(key=lambda failure: cells.index(failure.cell))
        tables = _gather([cell for cell in cells if cell.out not in failed], out)
    return Sweep(tuple(ran), tuple(skipped), tuple(failures), tables)


def last_time(path: Path, *, root: Path | None = None) -> float | None:
    """The seconds of the cell that was finished last, else of the chapter's last execution; None if there is none."""
    root = root or find_root()
    cells, _ = read(path, root=root)
    finished = [cell.notebook for cell in cells if cell.notebook.is_file()]
    if finished:
        return run.seconds(max(finished, key=lambda notebook: notebook.stat().st_mtime))
    return run.last_time(root, cells[0].chapter, profiles.profile(cells[0].profile).name)


def run_cell(cell: Cell, threads: int = 1, *, watch: Callable[[str], None] = lambda state: None) -> str:
    """Run a cell in a process of its own; returns what went wrong, empty if nothing did.

    watch: told which cell of the notebook is executed, such as "cell 17/46".
    """
    program = "from pullpush.site.sweep import _run; _run()"
    order = {"name": cell.chapter, "profile": cell.profile, "parameters": cell.parameters}
    order |= {"out": cell.out, "failed": cell.failed, "root": cell.root}
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
        # In a session of its own, so that Ctrl-C reaches only this process, which ends that one by closing its input.
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=os.environ | counts,
            start_new_session=True,
        ) as process,
    ):
        _running.add(process)
        try:
            with suppress(OSError):  # it may have ended already; its status says why
                process.stdin.write(json.dumps(order) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                if re.fullmatch(r"cell \d+/\d+", line.strip()):
                    watch(line.strip())
            code = process.wait()
        finally:
            _running.discard(process)
        said.seek(0)
        message = said.read().strip()
    if code < 0:
        return f"its process was killed by signal {-code}"
    return "" if code == 0 else message or f"exit status {code}"


def _run() -> None:
    """What the process of a cell does: the order is the first line of its standard input."""
    order = json.loads(sys.stdin.readline())
    out, failed, root = (Path(order.pop(name)) for name in ("out", "failed", "root"))
    status.end_with_parent()
    try:
        with status.sigterm_as_interrupt():
            chapter, profile = chapters.find(root, order["name"]), profiles.profile(order["profile"])
            if _key(_identity(chapter, profile, order["parameters"])) != out.name:
                sys.exit(f"{chapter.name} or its profile changed after this sweep had begun: run the sweep again")
            run.run(**order, out=out, failed=failed, root=root, watch=partial(print, flush=True))
    except PullPushError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped")


class _Progress:
    """How many cells are finished and how far those are that run, told to `watch` as one line."""

    def __init__(self, cells: int, finished: int, watch: Callable[[str], None]) -> None:
        self._cells, self._finished, self._watch = cells, finished, watch
        self._at: dict[str, str] = {}
        self._tell()

    def reached(self, cell: Cell, state: str) -> None:
        self._at[str(cell)] = state
        self._tell()

    def over(self, cell: Cell) -> None:
        self._at.pop(str(cell), None)
        self._finished += 1
        self._tell()

    def _tell(self) -> None:
        running = [f"{cell}: {state}" for cell, state in list(self._at.items())]
        self._watch("  ".join([f"{self._finished}/{self._cells} finished", *running]))


def _failures(
    pending: Mapping[Future[str], Cell], report: Callable[[str], None], progress: _Progress
) -> Iterator[Failure]:
    for future in as_completed(pending):
        cell = pending[future]
        message = str(future.exception()) if future.exception() else future.result()
        progress.over(cell)
        report(f"{'FAILED' if message else 'finished'}: {cell}")
        if message:
            yield Failure(cell, message)


def _stop(pool: Executor, pending: Mapping[Future[str], Cell]) -> None:
    """Start no further cell, end those that run, and wait for their end."""
    if not isinstance(pool, ThreadPoolExecutor):
        pool.shutdown(wait=False)
        return
    pool.shutdown(wait=False, cancel_futures=True)
    while not all(future.done() for future in pending):
        for process in list(_running):  # again and again, since a thread may just have been starting one
            with suppress(OSError, ValueError):  # it has gone, or knows already
                process.stdin.close()
        time.sleep(0.05)


def _gather(cells: list[Cell], out: Path) -> dict[str, Path]:
    """Put the cells' tables of one name under each other, the parameters in front, into `out/<name>.csv`."""
    from pullpush.lab.session import RESULTS  # here, so that the process of a cell does not wait for torch

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


def _identity(chapter: Chapter, profile: Profile, parameters: Mapping[str, Any]) -> list[Any]:
    """All that a cell's results depend on; a cell with another identity is another cell."""
    size = {item.name: getattr(profile, item.name) for item in fields(profile) if item.name not in ("about", "file")}
    return [chapters.source_hash(chapter), size, dict(parameters)]


def _key(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=_plain).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """What JSON does not know, in its terms."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple | set | frozenset | range) else str(value)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    try:
        with FileLock(out / ".lock", timeout=0):
            yield
    except Timeout:
        raise SweepError(f"another sweep is writing to {out}: wait for it, or give this one another `out`") from None

"""A grid of parameters over one chapter, in parallel processes, resumable.

A cell is finished when its notebook is there, and is never run twice; a changed chapter is another cell. Each runs in a
process of its own, which ends with the one that started it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from pullpush.cache.locks import named, who
from pullpush.lab import profiles
from pullpush.lab.root import find_root
from pullpush.site import executions
from pullpush.site.cells import Progress, end_cells, run_cell
from pullpush.site.grid import Cell, SweepError, read


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
        progress = Progress(len(cells), len(skipped), watch, noun="finished")
        with executor or ThreadPoolExecutor(jobs) as pool:
            pending: dict[Future[str], Cell] = {}
            try:
                for cell in todo:
                    further = {} if executor else {"watch": partial(progress.reached, cell)}
                    pending[pool.submit(run_cell, cell, threads, **further)] = cell
                failures = list(_failures(pending, report, progress))
            except BaseException:
                if isinstance(pool, ThreadPoolExecutor):
                    end_cells(pool, pending)
                else:
                    pool.shutdown(wait=False)
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
        return executions.seconds(max(finished, key=lambda notebook: notebook.stat().st_mtime))
    return executions.last_time(root, cells[0].chapter, profiles.profile(cells[0].profile).name)


def _failures(
    pending: Mapping[Future[str], Cell], report: Callable[[str], None], progress: Progress
) -> Iterator[Failure]:
    for future in as_completed(pending):
        cell = pending[future]
        message = str(future.exception()) if future.exception() else future.result()
        progress.over(cell)
        report(f"{'FAILED' if message else 'finished'}: {cell}")
        if message:
            yield Failure(cell, message)


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


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    holder = out / ".holder"
    try:
        lock = FileLock(out / ".lock").acquire(timeout=0)
    except Timeout:
        raise SweepError(
            f"another sweep is writing to {out} ({who(holder)}): wait for it, or give this one another `out`"
        ) from None
    with lock, named(holder):
        yield

"""A chapter run in a process of its own, which ends with the one that started it: a cell of a sweep, or a page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.site import chapters, run, status
from pullpush.site.grid import Cell, identity, key_of

_running: set[subprocess.Popen[str]] = set()  # the processes of the cells that this process runs


def end_cells(pool: ThreadPoolExecutor, pending: Collection[Future[str]]) -> None:
    """Start no further cell, end the processes of those that run, and wait for their end."""
    pool.shutdown(wait=False, cancel_futures=True)
    while not all(future.done() for future in pending):
        for process in list(_running):  # again and again, since a thread may just have been starting one
            with suppress(OSError, ValueError):  # it has gone, or knows already
                process.stdin.close()  # pyrefly: ignore[missing-attribute]
        time.sleep(0.05)


class Progress:
    """How many cells are finished and how far those are that run, told to `watch` as one line: "1/4 pages  …"."""

    def __init__(self, total: int, finished: int, watch: Callable[[str], None], *, noun: str) -> None:
        self._total, self._finished, self._watch, self._noun = total, finished, watch, noun
        self._at: dict[str, str] = {}
        self._tell()

    def reached(self, cell: object, state: str) -> None:
        """How far a cell is, such as "cell 17/46"."""
        self._at[str(cell)] = state
        self._tell()

    def over(self, cell: object) -> None:
        """A cell is finished, or has failed."""
        self._at.pop(str(cell), None)
        self._finished += 1
        self._tell()

    def _tell(self) -> None:
        running = [f"{cell}: {state}" for cell, state in list(self._at.items())]
        self._watch("  ".join([f"{self._finished}/{self._total} {self._noun}", *running]))


def run_cell(cell: Cell, threads: int = 1, *, watch: Callable[[str], None] = lambda state: None) -> str:
    """Run a cell in a process of its own; returns what went wrong, empty if nothing did.

    watch: told which cell of the notebook is executed, such as "cell 17/46".
    """
    order = {"name": cell.chapter, "profile": cell.profile, "parameters": cell.parameters}
    order |= {"out": cell.out, "failed": cell.failed, "root": cell.root}
    return _ordered("_run", order, threads, watch)


def run_page(
    name: str, profile: str, root: Path, threads: int = 1, *, watch: Callable[[str], None] = lambda state: None
) -> str:
    """Run a chapter with its defaults, as `run.run` does, in a process of its own; returns what went wrong."""
    return _ordered("_run_page", {"name": name, "profile": profile, "root": str(root)}, threads, watch)


def _ordered(function: str, order: Mapping[str, Any], threads: int, watch: Callable[[str], None]) -> str:
    """Let a new process call a function of this module, which reads its order; returns what went wrong."""
    program = f"from pullpush.site.cells import {function} as run; run()"
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
            env={"LOKY_MAX_CPU_COUNT": str(threads), **os.environ, **counts},
            start_new_session=True,
        ) as process,
    ):
        _running.add(process)
        try:
            with suppress(OSError):  # it may have ended already; its status says why
                print(json.dumps(order), file=process.stdin, flush=True)
            for line in process.stdout or ():
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
    """What the process of a cell does."""
    with _order() as order:
        out, failed, root = (Path(order.pop(name)) for name in ("out", "failed", "root"))
        out.parent.mkdir(parents=True, exist_ok=True)
        chapter, profile = chapters.find(root, order["name"]), profiles.profile(order["profile"])
        if key_of(identity(chapter, profile, order["parameters"])) != out.name:
            sys.exit(f"{chapter.name} or its profile changed after this sweep had begun: run the sweep again")
        # A cell of a sweep that was killed a moment ago may still be on its way out.
        with FileLock(out.parent / f".{out.name}.lock"):
            if not (out / f"{order['name']}.ipynb").is_file():
                run.run(**order, out=out, failed=failed, root=root, watch=partial(print, flush=True))


def _run_page() -> None:
    """What the process of a page does."""
    with _order() as order:
        run.run(order["name"], profile=order["profile"], root=Path(order["root"]), watch=partial(print, flush=True))


@contextmanager
def _order() -> Iterator[dict[str, Any]]:
    """What is to be done, the first line of standard input; errors of ours end the process with a message."""
    order = json.loads(sys.stdin.readline())
    status.end_with_parent()
    try:
        with status.sigterm_as_interrupt():
            yield order
    except PullPushError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped")

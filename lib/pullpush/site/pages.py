"""Pages that are executed one after the other or side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pullpush.lab.profiles import Profile
from pullpush.site import chapters, executions, run
from pullpush.site.workers import Tell, work_through


def current(names: Sequence[str], settings: Profile, root: Path, folder: Path) -> list[str]:
    """Those pages whose executions in a folder need not be made again."""
    return [
        name for name in names if executions.is_current(folder / f"{name}.ipynb", chapters.find(root, name), settings)
    ]


def run_all(
    names: Sequence[str], settings: Profile, root: Path, *, jobs: int, report: Tell, watch: Tell, **options: Any
) -> dict[str, str]:
    """Execute pages; those that failed, and why.

    Args:
        names: of pages; settings, root, options: as for `run`.
        jobs: pages at once, each in a process of its own; the cores are shared out among them.
        report: gets one line for each page; watch: how many pages are there.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; the processes have been ended, finished pages are kept.
    """
    if jobs > 1:
        options["threads"] = max(1, (os.cpu_count() or 1) // jobs)
    else:
        options["watch"] = watch
    calls: dict[str, Callable[[], str]] = {
        name: partial(run_page, name, profile=settings.source, root=root, **options) for name in names
    }
    _, failed = work_through(calls, jobs=jobs, noun="pages", report=report, watch=watch)
    return dict(failed)


def run_page(name: str, **options: Any) -> str:
    """Run a page, see `run`; how many of its cells could not be measured on the data, where that is any."""
    done = run.run(name, **options)
    return f"{done.gaps} cells not measured on these data" if done.gaps else ""

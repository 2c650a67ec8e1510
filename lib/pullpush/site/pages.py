"""Pages that are executed side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from pullpush.site.cells import Progress, end_cells, run_page


def side_by_side(
    names: Sequence[str],
    profile: str,
    root: Path,
    jobs: int,
    report: Callable[[str], None],
    watch: Callable[[str], None],
) -> dict[str, str]:
    """Execute pages side by side, each in a process of its own; those that failed, and why.

    Args:
        names: of pages; profile, root: as for `run`.
        jobs: pages at once; the cores are shared out among them.
        report: told one line for each page.
        watch: told how many pages are there, and how far the others are.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; the processes have been ended, finished pages are kept.
    """
    failed: dict[str, str] = {}
    progress = Progress(len(names), 0, watch, noun="pages")
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ThreadPoolExecutor(jobs) as pool:
        pending = {
            pool.submit(run_page, name, profile, root, threads, watch=partial(progress.reached, name)): name
            for name in names
        }
        try:
            for future in as_completed(pending):
                name, message = pending[future], future.result()
                if message:
                    failed[name] = message
                report(f"{name}  {'FAILED' if message else 'executed'}")
                progress.over(name)
        except BaseException:
            end_cells(pool, pending)
            raise
    return failed

"""Publishing: every page executed, its tables held against the committed ones, then all of it put in their place.

Pages are executed into `executed/local/<profile>`, where what is there and current is not executed again: a publish
that was killed goes on. `executed/<profile>`, which maintainers commit, changes at the very end and all at once: its
successor is built beside it and takes its place by a rename.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.root import find_root, workplace
from pullpush.site import chapters, executions, ledger_page, moved
from pullpush.site.moved import Moved
from pullpush.site.pages import side_by_side
from pullpush.site.status import held_back


class PublishError(PullPushError, RuntimeError):
    """Pages that cannot be published: one failed, or another process publishes."""


@dataclass(frozen=True)
class Published:
    """What a publish found.

    Attributes:
        tables: those that differ from the committed ones; claims: what differs of the pages' claims.
        timed: tables with seconds of this machine, which are not compared.
        folder: where the pages stand now.
    """

    tables: tuple[Moved, ...]
    claims: tuple[Moved, ...]
    timed: tuple[str, ...]
    folder: Path


def publish(
    names: Sequence[str] = (),
    *,
    profile: str = profiles.DEFAULT,
    jobs: int = 2,
    check: bool = False,
    root: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
    watch: Callable[[str], None] = lambda state: None,
) -> Published:
    """Execute pages that are not current, compare their tables with the committed ones, and put them in their place.

    Args:
        names: of pages; default: all.
        profile: as for `run`.
        jobs: pages at once; the cores are shared out among them.
        check: leave `executed/<profile>` as it is.
        report: told one line for each page.
        watch: told how many pages are there, and how far the others are.

    Raises:
        UnknownNameError: no such page or profile.
        PublishError: a page failed, or another process publishes: nothing was published, finished pages are kept.
        KeyboardInterrupt: Ctrl-C or SIGTERM; as before.
    """
    root, settings = root or find_root(), profiles.profile(profile)
    pages = [chapters.find(root, name) for name in names] or list(chapters.chapters(root))
    mine, target = (executions.place(root, settings.name, published=published) for published in (False, True))
    with _alone(workplace(root) / "executed"):
        for line in _recovered(target):
            report(line)
        todo = [page.name for page in pages if not executions.is_current(mine / f"{page.name}.ipynb", page, settings)]
        for page in pages:
            if page.name not in todo:
                report(f"{page.name}  executed before")
        if failed := side_by_side(todo, str(settings.file or settings.name), root, jobs, report, watch):
            said = "\n".join(f"{name}: {message}" for name, message in failed.items())
            there = len(pages) - len(failed)
            raise PublishError(
                f"{said}\n{target} is as it was; {there} of {len(pages)} pages are there, the same command goes on"
            )
        every = [page.name for page in pages]
        found = Published(
            tuple(moved.tables(mine, target, every)),
            tuple(one for name in every for one in moved.claims(mine, target, name)),
            tuple(moved.timed(mine, every)),
            mine if check else target,
        )
        if not check:
            _replace(mine, target, every, root)
    return found


def _beside(target: Path) -> tuple[Path, Path]:
    """Where the successor of a folder is built, and where the folder goes when it is replaced."""
    return target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")


def _replace(mine: Path, target: Path, pages: Sequence[str], root: Path) -> None:
    """Give the committed folder the files of some pages, and all claims gathered anew; all of it or nothing."""
    new, old = _beside(target)
    shutil.copytree(target, new) if target.is_dir() else new.mkdir(parents=True)
    for page in pages:
        for path in new.glob(f"{page}.*"):
            path.unlink()
        for path in mine.glob(f"{page}.*"):
            shutil.copy2(path, new / path.name)
    judged = {path.name.split(".")[0]: path for path in sorted(new.glob(f"*.{moved.CLAIMS}.csv"))}
    ledger_page.save(ledger_page.gathered(root, judged), new / ledger_page.FILE)
    with held_back(lambda: None) as stop:
        if target.is_dir():
            os.replace(target, old)
        os.replace(new, target)
    shutil.rmtree(old, ignore_errors=True)
    if stop.asked:
        raise KeyboardInterrupt(f"stopped; {target} had just been written")


def _recovered(target: Path) -> Iterator[str]:
    """Tidy up after a publish that was killed, and say what it left."""
    new, old = _beside(target)
    if not target.is_dir() and new.is_dir() and old.is_dir():
        os.replace(new, target)
        yield f"a publish was killed at its last step, which is done now: {target} is that of the pages executed then"
    elif new.is_dir():
        yield f"a publish was killed before {target} was changed: it is as it was"
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(executed: Path) -> Iterator[None]:
    executed.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(executed / ".publish.lock").acquire(timeout=0)
    except Timeout:
        raise PublishError(f"another process publishes to {executed}: wait for it, nothing was changed") from None
    with lock:
        yield

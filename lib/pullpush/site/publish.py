"""Publishing: every page executed, its tables held against the committed ones, then all of it put in their place.

Pages are executed into `executed/local/<profile>`, where what is there and current is not executed again: a publish
that was killed goes on. `executed/<profile>`, which maintainers commit, changes at the very end and all at once: its
successor is built beside it and takes its place by a rename.

Where tables of two executions differ, numbers agree within a relative 1e-5, which is more than rounding to six digits;
texts, rows and columns must be the same. A table with a column `time` holds seconds of the machine that made it: it is
named, and not compared.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.root import alone, find_root, workplace
from pullpush.lab.session import write_table
from pullpush.progress import held_back
from pullpush.site import chapters, ledger_page
from pullpush.site.run import current, run_all

RELATIVE, ABSOLUTE = 1e-5, 1e-8
TIMED = "time"
CLAIMS = "claims"


class PublishError(PullPushError, RuntimeError):
    """Pages that cannot be published: one failed, or another process publishes."""


class Moved(NamedTuple):
    """What differs, a table or a claim, and how."""

    name: str
    how: str


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
    mine, target = (chapters.place(root, settings.name, published=published) for published in (False, True))
    executed = workplace(root) / "executed"
    refusal = PublishError(f"another process publishes to {executed}: wait for it, nothing was changed")
    with alone(executed / ".publish.lock", refusal):
        for line in _recovered(target):
            report(line)
        every = [page.name for page in pages]
        there = current(every, settings, root, mine)
        for name in there:
            report(f"{name}  executed before")
        todo = [name for name in every if name not in there]
        if failed := run_all(todo, settings, root, jobs=jobs, report=report, watch=watch):
            said = "\n".join(f"{name}: {message}" for name, message in failed.items())
            raise PublishError(
                f"{said}\n{target} is as it was; {len(pages) - len(failed)} of {len(pages)} pages are there, the same "
                "command goes on"
            )
        found = Published(
            tuple(tables(mine, target, every)),
            tuple(one for name in every for one in claims(mine, target, name)),
            tuple(timed(mine, every)),
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
    judged = {path.name.split(".")[0]: path for path in sorted(new.glob(f"*.{CLAIMS}.csv"))}
    write_table(ledger_page.gathered(root, judged), new / ledger_page.FILE)
    with held_back() as came:
        if target.is_dir():
            os.replace(target, old)
        os.replace(new, target)
    shutil.rmtree(old, ignore_errors=True)
    if came:
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


# ---------------------------------------------------------------- what moved


def tables(fresh: Path, published: Path, pages: Sequence[str]) -> list[Moved]:
    """The tables of some pages that differ between two folders of executions, also those that only one has."""
    names = sorted({path.name for folder in (fresh, published) for path in _tables(folder, pages)})
    moved = [Moved(name, difference(fresh / name, published / name)) for name in names]
    return [one for one in moved if one.how]


def timed(folder: Path, pages: Sequence[str]) -> list[str]:
    """The tables of some pages that hold seconds of the machine."""
    return sorted(path.name for path in _tables(folder, pages) if TIMED in pd.read_csv(path, nrows=0))


def claims(fresh: Path, published: Path, page: str) -> list[Moved]:
    """The claims of a page whose verdict or number is another than before, and those that are new or gone."""
    ours, theirs = (
        {row["id"]: row for path in folder.glob(f"{page}.{CLAIMS}.csv") for row in pd.read_csv(path).to_dict("records")}
        for folder in (fresh, published)
    )
    found = []
    for id in {**theirs, **ours}:
        if id not in theirs or id not in ours:
            found.append(Moved(id, "is new" if id in ours else "is gone"))
            continue
        old, new = theirs[id], ours[id]
        if old["verdict"] != new["verdict"]:
            found.append(Moved(id, f"{old['verdict']} → {new['verdict']}"))
        elif not np.isclose(new["value"], old["value"], RELATIVE, ABSOLUTE, equal_nan=True):
            found.append(Moved(id, f"{new['verdict']} as before, {old['value']:.4g} → {new['value']:.4g}"))
    return found


def difference(ours: Path, theirs: Path) -> str:
    """How a table differs from the published one; empty if it does not, or holds seconds of the machine."""
    if not (ours.is_file() and theirs.is_file()):
        return "is new" if ours.is_file() else "is gone"
    new, old = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (ours, theirs))
    if list(new.columns) != list(old.columns):
        return f"has the columns {', '.join(new.columns)} in place of {', '.join(old.columns)}"
    if TIMED in new.columns:
        return ""
    if len(new) != len(old):
        return f"has {len(new)} rows in place of {len(old)}"
    # NaN for a text, which is close to nothing
    new_numbers, old_numbers = (side.apply(pd.to_numeric, errors="coerce").to_numpy(float) for side in (new, old))
    wrong = np.argwhere((new != old) & ~np.isclose(new_numbers, old_numbers, RELATIVE, ABSOLUTE))
    if not len(wrong):
        return ""
    row, column = wrong[0]
    before, after = (side.iat[row, column] or "nan" for side in (old, new))
    first = f"row {row + 1}, {new.columns[column]}: {before} → {after}"
    return f"{len(wrong)} of {new.size} cells moved, first in {first}"


def _tables(folder: Path, pages: Sequence[str]) -> list[Path]:
    return [path for page in pages for path in folder.glob(f"{page}.*.csv")]

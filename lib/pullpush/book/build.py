"""From executed notebooks to a site: gather them with the pages around them, and let jupyter-book write HTML.

Nothing is executed here, nothing is fetched, and a warning is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pullpush.book import chapters, run
from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.root import find_root

NOT_COPIED = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints", "_build", ".*")


class BuildError(PullPushError, RuntimeError):
    """The site cannot be built: a chapter has not been run, or jupyter-book warned."""


def build(*, profile: str = profiles.DEFAULT, root: Path | None = None) -> Path:
    """Write the book of a profile's executions to `_build/html`; returns its index page.

    The site takes its place only when it is whole; what jupyter-book said is in `_build/build.log`.

    Raises:
        UnknownNameError: no such profile.
        BuildError: a chapter was not run, or has changed since; or jupyter-book warned.
    """
    root = root or find_root()
    profile = profiles.profile(profile).name
    work = root / "_build"
    source, out = work / "source", work / "out"
    _gather(root, profile, source)
    shutil.rmtree(out, ignore_errors=True)
    _jupyter_book(source, out, log=work / "build.log")
    site = work / "html"
    shutil.rmtree(site, ignore_errors=True)
    os.replace(out / "_build" / "html", site)
    shutil.rmtree(out)
    return site / "index.html"


def _gather(root: Path, profile: str, source: Path) -> None:
    executed = root / "executed" / profile
    book = chapters.chapters(root)
    reasons = [why for chapter in book if (why := run.why_stale(executed / f"{chapter.name}.ipynb", chapter))]
    if reasons:
        raise BuildError("\n".join([*reasons, f"run: pullpush run --all --profile {profile}"]))
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source, ignore=NOT_COPIED)
    for chapter in book:
        (source / f"{chapter.name}.md").unlink()
        shutil.copyfile(executed / f"{chapter.name}.ipynb", source / f"{chapter.name}.ipynb")


def _jupyter_book(source: Path, out: Path, *, log: Path) -> None:
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(source)]
    command += ["--path-output", str(out), "-W", "--keep-going", "--all"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    log.write_text(done.stdout, encoding="utf-8")
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if "WARNING" in line or "ERROR" in line]
        raise BuildError("\n".join(["jupyter-book warned:", *(said or done.stdout.splitlines()[-15:]), f"all: {log}"]))

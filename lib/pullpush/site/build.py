"""From executed notebooks to a site: gather them with the pages around them, and let jupyter-book write HTML.

Nothing is executed here, nothing is fetched, and a warning is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.root import find_root, workplace
from pullpush.site import chapters, contents_page, executions, front_page, ledger_page, sources_page, verified

NOT_COPIED = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints", "_build", ".*")


class BuildError(PullPushError, RuntimeError):
    """The site cannot be built: a chapter has not been run, or jupyter-book warned."""


def build(
    *,
    profile: str = profiles.DEFAULT,
    root: Path | None = None,
    published: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write the book of a profile's executions to `_build/html`; returns its index page.

    Each chapter is shown as it was executed here, if it was and has not changed since, else as it was published. The
    site takes its place only when it is whole; what jupyter-book said is in `_build/build.log`.

    Args:
        profile: whose executions; a name or the path of a file.
        root: the book's root.
        published: take only what the maintainers publish.
        report: told for each chapter where its execution comes from.

    Raises:
        UnknownNameError: no such profile.
        BuildError: a chapter was not run, or has changed since; or jupyter-book warned.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the site that was there is still there.
    """
    root = root or find_root()
    work = workplace(root) / "_build"
    source, out, site, before = work / "source", work / "out", work / "html", work / "before"
    notebooks = _notebooks(root, profile, published=published, report=report)
    try:
        _gather(root, notebooks, source)
        shutil.rmtree(out, ignore_errors=True)
        _jupyter_book(source, out, log=work / "build.log")
        shutil.rmtree(before, ignore_errors=True)
        if site.exists():
            os.replace(site, before)
        os.replace(out / "_build" / "html", site)
    finally:
        if before.exists() and not site.exists():
            os.replace(before, site)
        for folder in (out, before):
            shutil.rmtree(folder, ignore_errors=True)
    return site / "index.html"


def _notebooks(root: Path, profile: str, *, published: bool, report: Callable[[str], None]) -> list[Path]:
    """The executions to show, in the book's order: of each chapter the first that is not stale."""
    name = profiles.profile(profile).name
    places = [executions.place(root, name, published=True)]
    if not published:
        places.insert(0, executions.place(root, name))
    found, reasons = [], []
    for chapter in chapters.chapters(root):
        stale = []
        for place in places:
            notebook = place / f"{chapter.name}.ipynb"
            why = executions.why_stale(notebook, chapter)
            if why is None:
                found.append(notebook)
                report(
                    "  ".join([chapter.name, f"from {place.relative_to(root)}", *(f"({reason})" for reason in stale)])
                )
                break
            stale += [why] if notebook.is_file() else []
        else:
            reasons.append(stale[0] if stale else executions.why_stale(places[0] / f"{chapter.name}.ipynb", chapter))
    if reasons:
        hint = f"run: pullpush {'publish' if published else 'run --all'} --profile {profile}"
        raise BuildError("\n".join([*reasons, hint]))
    return found


def _gather(root: Path, notebooks: list[Path], source: Path) -> None:
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source, ignore=NOT_COPIED)
    for notebook in notebooks:
        (source / f"{notebook.stem}.md").unlink()
        shutil.copyfile(notebook, source / notebook.name)
    judged = {notebook.stem: notebook.with_suffix(".claims.csv") for notebook in notebooks}
    claims = ledger_page.gathered(root, judged)
    front_page.complete(source / "intro.md", claims, notebooks)
    if (source / "claims.md").is_file():
        ledger_page.complete(source / "claims.md", claims)
        verified.complete(source / "claims.md", verified.place(root))
    if (source / "library" / "contents.md").is_file():
        contents_page.complete(source / "library" / "contents.md", references=source / "references.bib")
    if (source / "sources.md").is_file():
        sources_page.complete(source / "sources.md", notebooks)
    _link_executions(source, {notebook.stem for notebook in notebooks})


def _link_executions(source: Path, names: set[str]) -> None:
    """Let links to `NAME.md`, which JupyterLab and a repository's pages follow, lead to the executed `NAME.ipynb`."""
    link = re.compile(rf"(\]\((?:\.\./)*(?:{'|'.join(map(re.escape, sorted(names)))}))\.md(?=[)#])")
    for page in [*source.rglob("*.md"), *source.rglob("*.ipynb")]:
        page.write_text(link.sub(r"\1.ipynb", page.read_text(encoding="utf-8")), encoding="utf-8")


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

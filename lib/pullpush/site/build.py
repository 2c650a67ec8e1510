"""From executed notebooks to a site: gather them with the pages around them, and let jupyter-book write HTML.

Nothing is executed here, nothing is fetched, and a warning is an error.

The first page says what each chapter found, taken from its execution and never typed: `book/intro.md` has marks where
findings go:

    <!-- claim: supclap-s2-perpendicular -->   the claim and what was found of it
    <!-- found: 00-world -->                   what the chapter opens with, see `lab.findings`
    <!-- figure: 01-forces 1.4 -->             that figure, with its caption, and a link to its chapter
    <!-- interactive: 01-forces-lab -->        the chapter's force figure, to play with
    <!-- cards: findings.yaml -->              a card a chapter, see `lab.findings`
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from pullpush.errors import PullPushError, looked_up
from pullpush.lab import profiles
from pullpush.lab.findings import Read, findings, opening
from pullpush.lab.ledger import sentence
from pullpush.lab.root import find_root, workplace
from pullpush.show.captions import anchor
from pullpush.site import card_pages, chapters, ledger_page
from pullpush.site.chapters import raw, shown_html

MARK = re.compile(r"<!-- (claim|found|figure|interactive|cards): ([^\n]*?) -->")
FIGURE = re.compile(r'<figure id="(fig-[^"]+)".*?</figure>', re.DOTALL)
FRAME = re.compile(r'<div><iframe srcdoc="[^"]*" title="[^"]*"[^>]*></iframe></div>')
IMAGE = re.compile(r"<img [^>]*>")
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
    places = [chapters.place(root, name, published=True)]
    if not published:
        places.insert(0, chapters.place(root, name))
    found, reasons = [], []
    for chapter in chapters.chapters(root):
        stale = []
        for place in places:
            notebook = place / f"{chapter.name}.ipynb"
            why = chapters.why_stale(notebook, chapter)
            if why is None:
                found.append(notebook)
                report(
                    "  ".join([chapter.name, f"from {place.relative_to(root)}", *(f"({reason})" for reason in stale)])
                )
                break
            stale += [why] if notebook.is_file() else []
        else:
            reasons.append(stale[0] if stale else chapters.why_stale(places[0] / f"{chapter.name}.ipynb", chapter))
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
    fill_front_page(source / "intro.md", claims, notebooks, root)
    every, contents, sources = (source / name for name in ("claims.md", "library/contents.md", "sources.md"))
    if every.is_file():
        ledger_page.complete(every, claims)
        ledger_page.tell_verified(every, ledger_page.verified_file(root))
    if contents.is_file():
        text = card_pages.contents(card_pages.cited(source / "references.bib"))
        card_pages.fill(contents, {card_pages.CONTENTS: text})
    if sources.is_file():
        card_pages.fill(sources, card_pages.sources(notebooks))
    _link_executions(source, {notebook.stem for notebook in notebooks})


def fill_front_page(page: Path, claims: pd.DataFrame, notebooks: Sequence[Path], root: Path | None = None) -> None:
    """Put what was found into a copy of the page, where its marks stand."""
    executed = {notebook.stem: notebook for notebook in notebooks}

    def read(file: str) -> pd.DataFrame:
        return claims if file == ledger_page.FILE else pd.read_csv(executed[file.split(".")[0]].with_name(file))

    def claim(id: str) -> str:
        row = looked_up("claim", id, {row["id"]: row for row in claims.to_dict("records")})
        return f"*{row['claim']}* ({row['source']}) — {sentence(row)}"

    def interactive(chapter: str) -> str:
        frames = (FRAME.search(html) for html in shown_html(looked_up("chapter", chapter, executed)))
        return raw(next((frame[0] for frame in frames if frame), ""))

    write: Mapping[str, Callable[[str], str]] = {
        "claim": claim,
        "found": lambda chapter: opening(chapter, read),
        "figure": lambda words: _figure_text(executed, words),
        "interactive": interactive,
        "cards": lambda file: raw(_cards(root or find_root(), read, executed)),
    }
    text = MARK.sub(lambda mark: write[mark[1]](mark[2]), page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def _figure_text(executed: Mapping[str, Path], words: str) -> str:
    chapter, _, number = words.partition(" ")
    if not number:
        raise PullPushError(f"a mark for a figure is <!-- figure: 01-forces 1.4 -->, got {words!r}")
    figures = {
        match[1]: match[0]
        for html in shown_html(looked_up("chapter", chapter, executed))
        for match in FIGURE.finditer(html)
    }
    found = figures.get(anchor(number))
    if found is None:  # an experiment that was not kept for this profile has no figure
        return ""
    figure = found.replace(f'id="{anchor(number)}" ', "")  # the anchor is the chapter's
    return raw(f'<a href="{chapter}.html#{anchor(number)}" style="color:inherit;text-decoration:none">{figure}</a>')


def _cards(root: Path, read: Read, executed: Mapping[str, Path]) -> str:
    """A card a finding: question, sentence, small figure, number, and the link that it is."""
    pictures = {one: IMAGE.search(_figure_text(executed, one.figure)) for one in findings(root, read)}
    blocks = [
        f'<a class="finding" href="{one.pages[0]}.html"><small>{escape(one.question)}</small>'
        f"<strong>{escape(one.answer)}</strong>{picture[0] if picture else ''}"
        f"<small>{escape(one.number)}{', 95 % interval' if '[' in one.number else ''}</small></a>"
        for one, picture in pictures.items()
    ]
    return f'<div class="findings">{"".join(blocks)}</div>'


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

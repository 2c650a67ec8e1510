"""The site's first page: what each chapter found, taken from its execution and never typed.

`book/intro.md` has marks where findings go:

    <!-- claim: supclap-s2-perpendicular -->   the claim and what was found of it
    <!-- recall: 00-world -->                  R@1 of the chapter's results, beside chance
    <!-- figure: 01-forces 1.4 -->             that figure, with its caption, and a link to its chapter
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import nbformat
import pandas as pd

from pullpush.errors import PullPushError, unknown
from pullpush.lab.ledger import sentence
from pullpush.show.captions import anchor

MARK = re.compile(r"<!-- (claim|recall|figure): ([^\n]*?) -->")


def complete(page: Path, claims: pd.DataFrame, notebooks: Sequence[Path]) -> None:
    """Put what was found into a copy of the page, where its marks stand.

    Args:
        page: Markdown with marks.
        claims: see `ledger_page.gathered`.
        notebooks: the executions that the site shows, each with its tables beside it.

    Raises:
        UnknownNameError: a mark names a claim or a chapter that is not there.
        PullPushError: a mark cannot be read.
    """
    executed = {notebook.stem: notebook for notebook in notebooks}
    write: Mapping[str, Callable[[str], str]] = {
        "claim": lambda id: claim_text(claims, id),
        "recall": lambda chapter: recall_text(_of(executed, chapter)),
        "figure": lambda words: _figure_text(executed, words),
    }
    text = MARK.sub(lambda mark: write[mark[1]](mark[2]), page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def claim_text(claims: pd.DataFrame, id: str) -> str:
    """A claim, where it stands in its paper, and what was found of it, as Markdown."""
    rows = claims.set_index("id")
    if id not in rows.index:
        raise unknown("claim", id, rows.index)
    row = rows.loc[id]
    return f"*{row['claim']}* ({row['source']}) — {sentence(row)}"


def recall_text(notebook: Path) -> str:
    """R@1 in both directions with 95 % intervals, beside chance, from `<chapter>.results.csv`."""
    table = pd.read_csv(notebook.with_suffix(".results.csv"))
    rows = table[table["metric"] == "R@1"].set_index("direction")
    parts = [
        f"{100 * row['value']:.0f} % [{100 * row['low']:.0f}, {100 * row['high']:.0f}] {name}"
        for name, row in (("text to audio", rows.loc["T2A"]), ("audio to text", rows.loc["A2T"]))
    ]
    return f"R@1 is {' and '.join(parts)}; by chance {100 * rows['chance'].max():.1f} %."


def figures_of(notebook: Path) -> dict[str, str]:
    """The numbered figures of an execution: anchor → HTML, picture and caption."""
    return {match[1]: match[0] for html in shown_html(notebook) for match in FIGURE.finditer(html)}


FIGURE = re.compile(r'<figure id="(fig-[^"]+)".*?</figure>', re.DOTALL)


def _figure_text(executed: Mapping[str, Path], words: str) -> str:
    chapter, _, number = words.partition(" ")
    if not number:
        raise PullPushError(f"a mark for a figure is <!-- figure: 01-forces 1.4 -->, got {words!r}")
    found = figures_of(_of(executed, chapter)).get(anchor(number))
    if found is None:  # an experiment that was not kept for this profile has no figure
        return ""
    figure = found.replace(f'id="{anchor(number)}" ', "")  # the anchor is the chapter's
    link = f'<a href="{chapter}.html#{anchor(number)}" style="color:inherit;text-decoration:none">{figure}</a>'
    return f"```{{raw}} html\n{link}\n```"


def shown_html(notebook: Path) -> Iterator[str]:
    """All HTML that the cells of a notebook have shown."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/html", ""))


def _of(executed: Mapping[str, Path], chapter: str) -> Path:
    if chapter not in executed:
        raise unknown("chapter", chapter, executed)
    return executed[chapter]

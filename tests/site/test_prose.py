"""Nothing about a measured difference is typed in a chapter: words come from the ledger, numbers from cells.

What is held: **verdict words** in Markdown and in the texts of code cells, and the **papers' numbers** anywhere.

A word list cannot read. It holds words that say how a comparison came out and little else (*confirmed*, *outperforms*,
*retrieves better*), so that hardly a sentence is refused that should stand; "holds" or "more" alone say too many other
things. A sentence may use them where it asks, supposes, or tells what a paper claims (OPEN): "Whether it helps is the
next question." So may the numbered claims before the parameters. What a chapter may say of a result in its own words is
a mechanism, a limit, or what to look at.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from miniature import ROOT

from pullpush.data.banks import BANKS
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO, TEXT
from pullpush.lab import claims
from pullpush.losses import TERMS
from pullpush.metrics import METRICS
from pullpush.rewriting import REWRITERS
from pullpush.site import card_pages, chapters

CHAPTERS = chapters.chapters(ROOT)
TABLES = ROOT / "book" / "paper-tables"

VERDICTS = (
    r"confirm(?:s|ed)",  # our verdicts are: holds, is reversed, is smaller, cannot be told; from ledger.WORDS alone
    r"contradict(?:s|ed)",
    r"refut(?:es|ed)",
    r"(?:un)?founded",
    r"not seen",
    r"the paper (?:is|was) (?:right|wrong)",
    r"(?:as|what) the paper (?:says|found|finds)",
    r"(?:observation|claim|finding)s? (?:holds?|stands?|fails?)",
    r"help(?:s|ed)",  # what a method does to a score
    r"hurts?",
    r"harm(?:s|ed)",
    r"improv(?:es|ed)",
    r"outperform(?:s|ed)?",
    r"beats",
    r"surpass(?:es|ed)?",
    r"(?:falls?|lags?|stays?) behind",
    r"adds? (?:nothing|little|hardly)",
    r"makes? no difference",
    r"pays? off",
    r"(?:ranks?|scores?|does|do|is|are|becomes?) (?:\w+ )?(?:better|worse|best|worst) (?:than|in|on|of|with|by)",
    r"retrieves? (?:better|worse|best|worst)",
    r"(?:drifts?|gains?|loses?) (?:\*?)(?:more|less|most|least|nothing|as much)",
    r"(?:half|third|quarter|fifth|thirds|quarters|fifths) of (?:the|all|its) (?:squared|gain|effect|push|progress)",
    r"significant(?:ly)?",
    r"measurabl[ey]",
)
VERDICT = re.compile(rf"\b(?:{'|'.join(VERDICTS)})(?!\w)", re.IGNORECASE)
OPEN = re.compile(
    r"\?\W*$|\b(?:whether|whenever|if|would|could|may|might|should|suppose)\b"
    r"|\b(?:none|which) of (?:them|these)\b"
    r"|\b(?:papers?|authors?|SupCLAP|ATRI|GLAP)\b.*\b(?:says?|claims?|asks?|expects?|proposes?|finds?)\b",
    re.IGNORECASE,
)
NUMBERED = re.compile(r"\(\d\) [A-Z]")  # "(2) It improves …": a claim that the chapter is about to judge

JUDGING = [chapter for chapter in CHAPTERS if chapter.name in {claim.chapter for claim in claims.load_all()}]
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


# What a chapter says


def prose(text: str) -> str:
    """Markdown without code, mathematics and links' targets, for these are no sentences."""
    text = re.sub(r"^(`{3,4}).*?^\s*\1$|\$\$.*?\$\$", " ", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\$[^$]*\$|\{\w+(?::\w+)?\}|\]\([^)]*\)", " ", text)


def sentences(text: str) -> list[str]:
    """The sentences of a text; each row of a table and each item of a list begins a new one."""
    whole = re.sub(r"\n(?=\s*(?:[|*#>:-]|\d+\.)\s|\n)", "\0", prose(text))
    return [" ".join(one.split()) for one in re.split(r"\0|(?<=[.!?])[*)_\"]*\s+", whole) if one.strip()]


def spoken(code: str) -> Iterator[str]:
    """The texts in a code cell that could be read on the page: all strings but claims' ids, those of f-strings piece by
    piece.
    """
    ids = {claim.id for claim in claims.load_all()}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in ids:
            yield node.value


def verdict_words(text: str, *, opening: bool = False) -> list[str]:
    """Sentences that say how a comparison came out, with the word that says it; opening: before the parameters."""
    found = [(VERDICT.search(one), one) for one in sentences(text) if not (opening and NUMBERED.search(one))]
    return [f"{word[0]!r} in: {one}" for word, one in found if word and not OPEN.search(one)]


# Sentences


PAGES = sorted({*(ROOT / "book").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"} - {*TABLES.rglob("*.md")})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_has_more_than_forty_words(page):
    text = re.sub(r"^---\n.*?\n---\n|<!--.*?-->", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    cells = [cell for one in sentences(text) for cell in (one.split("|") if one.startswith("|") else [one])]
    assert not [one for one in cells if len(re.findall(r"\w[\w'’-]*", one)) > 40]


OPENING = [page for page in PAGES if page.parent.name in ("book", "library")]


@pytest.mark.parametrize("page", OPENING, ids=lambda page: page.stem)
def test_a_page_opens_with_a_number(page):
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)[:700]
    first = re.split(r"\n(?:\*\*The question|## )", text)[0]
    assert re.search(r"findings\.found|<!-- claim|\d", re.sub(r"\]\([^)]*\)", "]", first))


def test_the_numbers_that_pages_open_with_are_true():
    glossary = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    words = sum(len(re.findall(r"^\S.*\n  \S", part, re.MULTILINE)) for part in glossary.split("```")[1::2])
    true = {
        "data": f"{len(BANKS)} banks of sounds and {len(SETS)} sets",
        "encoders": f"all {len(AUDIO) + len(TEXT)} encoders",
        "index": f"{len(TERMS)} losses, the forces and {len(METRICS)} metrics",
        "losses": f"{len(TERMS)} methods",
        "rewriting": f"by {len(REWRITERS)} rewriters",
        "lab": f"the {len(CHAPTERS)} pages",
        "sources": f"{len(card_pages.recordings())} collections of recordings and {len(card_pages.weights())} encoders",
        "glossary": f"{words} words",
    }
    pages = {page.stem: " ".join(page.read_text(encoding="utf-8").split()) for page in OPENING}
    assert not [page for page, said in true.items() if said not in pages[page]]
    first, _, table = pages["adoption"].partition("| you have")
    assert all(f"| {number} |" in table for number in re.findall(r"[+−][\d.]+ \[[^]]*\]", first))


# Numbers


def significant(number: str) -> int:
    """Digits that mean something: 3 of "0.0123" and of "41.9", 1 of "100"."""
    digits = number.replace(".", "").lstrip("0")
    return len(digits if "." in number else digits.rstrip("0"))


def numbers_of_code(code: str) -> set[str]:
    """Numeric literals of a cell, and the numbers in its texts."""
    literals = [
        token.string for token in tokenize.generate_tokens(StringIO(code).readline) if token.type == tokenize.NUMBER
    ]
    return {literal.replace("_", "") for literal in literals} | {
        n for text in spoken(code) for n in numbers_of_text(text)
    }


def numbers_of_text(text: str) -> set[str]:
    """Numbers in Markdown, mathematics included; names such as "A2T" or "v1.2.3" hold none."""
    return set(re.findall(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w]|[.,]\d)", re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)))


def printed(papers: set[str]) -> np.ndarray:
    """Every number of the papers' tables, and every difference that their claims are about."""
    tables = [pd.read_csv(path) for paper in papers for path in sorted(TABLES.glob(f"{paper}_table*.csv"))]
    values = [
        pd.to_numeric(table[name], errors="coerce") for table in tables for name in ("value", "std") if name in table
    ]
    given = [claims.paper_value(claim) for paper in papers for claim in claims.load(paper)]
    every = np.concatenate([*values, [value for value in given if value is not None]])
    return np.abs(every[np.isfinite(every)])


def typed(numbers: set[str], values: np.ndarray) -> list[str]:
    """Numbers of three significant digits or more that are one of the values, as precisely as they are typed."""
    found = []
    for number in sorted(numbers):
        plain = (
            number if re.fullmatch(r"\d+(?:\.\d+)?", number) else f"{float(number):.10g}" if "x" not in number else ""
        )
        if plain and significant(plain) >= 3:
            decimals = len(plain.partition(".")[2])
            if np.isclose(np.round(values, decimals), float(plain), rtol=0, atol=10.0 ** -(decimals + 3)).any():
                found.append(number)
    return found


# The chapters


def cells(chapter: chapters.Chapter) -> Iterator[tuple[str, str]]:
    """Kind and source of each cell; a figure's alternative text is Markdown, too."""
    for cell in chapters.read(chapter).cells:
        yield cell.cell_type, cell.source
        if alt := cell.metadata.get("mystnb", {}).get("image", {}).get("alt"):
            yield "markdown", alt


@every_chapter
def test_no_verdict_is_typed(chapter):
    found, opening = [], True
    for kind, source in cells(chapter):
        opening = opening and (kind == "markdown" or "findings.found" in source)  # then come the parameters
        texts = spoken(source) if kind == "code" else [source]
        found += [fault for text in texts for fault in verdict_words(text, opening=opening)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("chapter", JUDGING, ids=lambda chapter: chapter.name)  # others are about no paper
def test_no_number_of_a_paper_is_typed(chapter):
    values = printed({claim.paper for claim in claims.of_chapter(chapter.name)})  # it judges or leaves them
    assert len(values)
    found = []
    for kind, source in cells(chapter):
        numbers = numbers_of_code(source) if kind == "code" else numbers_of_text(source)
        found += [f"{number} in: {source[:200]!r} …" for number in typed(numbers, values)]
    assert not found, "\n".join(found)

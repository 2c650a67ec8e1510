"""What a page says of its evidence: the origin of stored numbers, the verdicts on claims."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown

from pullpush.errors import check_all_known
from pullpush.lab.ledger import LEFT, SHORT, WORDS, Ledger, falls_short, sentence, unit_of
from pullpush.lab.paper import form
from pullpush.lab.provenance import UNNOTED
from pullpush.lab.root import is_packaged
from pullpush.lab.scores import Scores
from pullpush.show.markup import Markup

NAMED = 4  # components that a banner names
OPEN = 12  # rows; a source with more is closed at first
HEAD = ("claim", "paper", "here ± half width [95 %]", "seeds × clips", "verdict")
CELL = "padding:0.25em 0.7em;text-align:left;vertical-align:baseline"


def cells(texts: Iterable[str], tag: str = "td", *, more: str = "") -> str:
    """A row of an HTML table, cell by cell; texts are HTML already; more: style beyond that of all cells."""
    return "".join(f'<{tag} style="{CELL}{more}">{text}</{tag}>' for text in texts)


def html_table(head: Iterable[str], lines: Iterable[str], *, size: str = "0.9em", attributes: str = "") -> str:
    """An HTML table that scrolls where it is wide; head: texts; lines: rows as HTML."""
    body = "\n".join(lines)
    return (
        f'<div style="overflow-x:auto"><table{attributes} style="font-size:{size};font-variant-numeric:tabular-nums">\n'
        f"<thead><tr>{cells(map(escape, head), 'th')}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def origin(scores: Scores) -> Markdown:
    """Where stored scores come from, which components compute something else since, and the command that makes them
    again; nothing of scores that were computed here. Of scores that nobody kept: how to get them.
    """
    if not scores:
        return Markdown(f"> {not_kept(scores)}")
    if not scores.stored:
        return Markdown("")
    stamp = scores.stamp
    seeds = f"{'seeds' if len(stamp.seeds) > 1 else 'seed'} {ranges(stamp.seeds)}"
    made = f"{stamp.made} UTC, {seeds}, {stamp.seconds / 60:.0f} minutes of training on {stamp.processor or UNNOTED}"
    said = f"> **Stored, not computed on this page:** {made}. `{stamp.command}` makes it again."
    if not scores.stale:
        return Markdown(said)
    named = [f"`{name}`" for name in scores.stale[:NAMED]]
    named += [f"{len(scores.stale) - NAMED} more"] if len(scores.stale) > NAMED else []
    *others, last = named
    does = f"{', '.join(others)} and {last} compute" if others else f"{last} computes"
    return Markdown(f"{said}\n>\n> **Since then {does} something else:** these numbers are of what was computed then.")


def not_kept(scores: Scores) -> str:
    """How to get scores that nobody kept, or that stayed in the repository."""
    if is_packaged():
        return (
            f"*{scores.experiment.name}* takes long, and what it gave lies in the book's repository, not in the "
            "installed package: clone it and point `PULLPUSH_BOOK` to the clone."
        )
    return (
        f"*{scores.experiment.name}* takes long and was not kept for these parameters and data: "
        f"`{scores.stamp.command or 'pullpush sweep'}` with the same parameters trains it, and "
        "`-p compute_long true` shows it."
    )


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers in few characters.

    >>> ranges([0, 1, 2, 7])
    '0–2, 7'
    """
    in_turn = groupby(enumerate(sorted({*numbers})), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in run] for _, run in in_turn]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


# ---------------------------------------------------------------- claims


def verdicts(ledger: Ledger, *ids: str) -> Markdown:
    """A list of claims, where they stand, and what was found of each."""
    check_all_known(f"claim of {ledger.chapter}", ids, ledger.claims)
    rows = ledger.table().set_index("id").loc[list(ids or (claim.id for claim in ledger.judged))]
    return Markdown("\n".join(f"* *{row['claim']}* ({row['source']}) — {sentence(row)}" for _, row in rows.iterrows()))


def ledger(ledger: Ledger) -> Markup:
    """All claims of a chapter with what was found, by where they stand in the paper; what is not judged, with why."""
    table = ledger.table()
    several = table["paper"].nunique() > 1
    blocks = [f"<p>{len(table)} claims: {'; '.join(_of_each(table['verdict']))}.</p>"]
    for (source, paper), rows in table.groupby([table["source"].str.partition(", ")[0], "paper"], sort=False):
        blocks.append(_block(f"{source} of {paper}" if several else source, rows))
    text = "\n".join(f"{row['id']}: {sentence(row)}".replace("**", "") for _, row in table.iterrows())
    return Markup(f"<div>{''.join(blocks)}</div>", text)


def _of_each(found: pd.Series) -> list[str]:
    counts = found.value_counts()
    return [f"{counts[name]} {words_of(name, counts[name])}" for name in WORDS if name in counts]


def words_of(verdict: str, count: int = 1) -> str:
    """A verdict as what is said of some claims.

    >>> words_of("holds"), words_of("holds", 2)
    ('holds', 'hold')
    """
    if count == 1:
        return WORDS[verdict]
    plural = {"holds": "hold", "shows": "show", "is a test": "are tests", "is": "are"}
    return re.sub(rf"\b({'|'.join(plural)})\b", lambda found: plural[found[0]], WORDS[verdict], count=0)


def _block(title: str, rows: pd.DataFrame) -> str:
    said = ", ".join(_of_each(rows["verdict"]))
    table = html_table(HEAD, (_line(row) for _, row in rows.iterrows()))
    is_open = " open" if len(rows) <= OPEN else ""
    return (
        f'<details{is_open} style="margin:0.6em 0"><summary><strong>{escape(title)}</strong>: {escape(said)}</summary>'
        f"{table}</details>"
    )


def _line(row: Mapping[str, Any]) -> str:
    claim, paper = cells([escape(row["claim"])], more=";min-width:16em"), escape(paper_number(row))
    if row["verdict"] == LEFT:
        left = f'<td colspan="3" style="{CELL}"><em>{escape(row["reason"])}</em></td>'
        return f"<tr>{claim}{cells([paper], more=';white-space:nowrap')}{left}</tr>"
    numbers = (paper, escape(estimate(row)), f"{row['seeds']:.0f} × {row['clips']:.0f}")
    verdict = cells([f"<strong>{escape(row['verdict'])}</strong>" + (f"<br>{SHORT}" if falls_short(row) else "")])
    return f"<tr>{claim}{cells(numbers, more=';white-space:nowrap')}{verdict}</tr>"


def estimate(row: Mapping[str, Any]) -> str:
    """What was measured: "+3.2 ± 1.1 [+2.1, +4.3] points"; "" if nothing was."""
    if not np.isfinite(row["value"]):
        return ""
    digits = form(row["low"], row["high"])
    low, high, value = (f"{row[name]:+{digits}}" for name in ("low", "high", "value"))
    return f"{value} ± {row['half_width']:{digits}} [{low}, {high}]{unit_of(row)}".replace("-", "−")


def paper_number(row: Mapping[str, Any]) -> str:
    """What the paper prints, as precisely as what was measured: "+2.7 points"; "–" if it prints nothing."""
    if not np.isfinite(row["paper_value"]):
        return "–"
    digits = form(row["low"], row["high"]) if np.isfinite(row["value"]) else ".3g"
    return f"{row['paper_value']:+{digits}}{unit_of(row)}".replace("-", "−")

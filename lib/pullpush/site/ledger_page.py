"""The page *Every claim*: the claims of all papers, with what the chapters' executions found of them.

A chapter saves what it judged as `<chapter>.claims.csv`; claims that nothing judges bring their reason from
`book/claims`. The page has filters, which `_static/book.js` plays; without JavaScript it is the whole table.
"""

import shutil
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from pullpush.errors import unknown
from pullpush.lab.claims import Claim, load_all, row_of
from pullpush.lab.evidence import cells, estimate, html_table, paper_number
from pullpush.lab.ledger import COLUMNS as JUDGED, LEFT, NUMBERS, SHORT, SIDES, WORDS, falls_short, sentence, unit_of
from pullpush.lab.root import DEFAULT
from pullpush.lab.session import write_table
from pullpush.metrics.inference import CANNOT_TELL
from pullpush.site import chapters

COLUMNS = ("id", "paper", "source", "paper_value", "value", "low", "high", "verdict", "chapter", "reason")
FURTHER = tuple(name for name in JUDGED if name not in COLUMNS)
NOT_EXECUTED = "chapter not executed"
FILE = "claims.csv"
HISTORY = "claims-history.yaml"  # beside the claims: when each was judged first, and what it said before it changed
MARK = "<!-- every claim -->"  # where the page's table goes
HEAD = ("claim", "stands in", "paper", "here ± half width [95 %]", "verdict", "chapter")
OPEN_MARK = "<!-- still open -->"  # where the page says what would narrow the intervals of claims that cannot be told
OPEN_HEAD = ("claim", "half width", "wanted", "seeds", "would take", "clips", "would take")
FILTERS = ("paper", "verdict", "chapter")
VERIFIED_FILE = "verified.csv"
VERIFIED_MARK = "<!-- trained again -->"  # where the page says which runs `pullpush verify` trained again
RUN = ("chapter", "experiment", "system", "point", "seed")
VERIFIED = ("date", "processor", *RUN, "metric", "kept", "here", "difference", "band", "within", "minutes")
VERIFIED_HEAD = ("trained again", "numbers", "inside", "nearest to the edge of its band")


# ---------------------------------------------------------------- the table


def tables_of(root: Path, profile: str, *, published: bool = False) -> dict[str, Path]:
    """What was saved of each chapter's claims: executed here, before what is published; or only what is published."""
    places = [chapters.place(root, profile, published=True)]
    places += [] if published else [chapters.place(root, profile)]
    return {path.name.split(".")[0]: path for place in places for path in sorted(place.glob("*.claims.csv"))}


def gathered(root: Path, tables: Mapping[str, Path]) -> pd.DataFrame:
    """Every claim of every paper, a row each: COLUMNS, then FURTHER."""
    found = {chapter: pd.read_csv(path).set_index("id") for chapter, path in tables.items() if path.is_file()}
    rows = [_row(claim, found.get(claim.chapter or "")) for claim in load_all(folder=root / "book" / "claims")]
    return pd.DataFrame(rows, columns=[*COLUMNS, *FURTHER])


def _row(claim: Claim, judged: pd.DataFrame | None) -> dict[str, Any]:
    row = row_of(claim) | {"chapter": claim.chapter or "", "verdict": LEFT, "reason": claim.reason.get("why", "")}
    if not claim.judged:
        return row
    if judged is None:
        return row | {"reason": NOT_EXECUTED}
    if claim.id not in judged.index:
        return row | {"reason": "not among the claims when the chapter was executed"}
    found = [*NUMBERS, "verdict", "reason"]  # of today's claim, what was found then
    return row | {"reason": ""} | judged.loc[claim.id].reindex(found).dropna().to_dict()


def counted(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Paper → verdict → how many of its claims have it, in the order of the vocabulary."""
    counts = {paper: rows["verdict"].value_counts() for paper, rows in table.groupby("paper", sort=False)}
    return {paper: {name: int(rows[name]) for name in WORDS if name in rows} for paper, rows in counts.items()}


def chosen(table: pd.DataFrame, *, paper: str | None = None, verdict: str | None = None) -> pd.DataFrame:
    """The claims of one paper, by its name or the start of it, and of one verdict, in the same way.

    Raises:
        UnknownNameError: no claim is of such a paper or verdict.
    """
    for column, start in (("paper", paper), ("verdict", verdict)):
        if start and not table[column].str.startswith(start).any():
            raise unknown(column, start, table[column].unique())
        table = table[table[column].str.startswith(start or "")]
    return table


def titles(book: Path) -> dict[str, str]:
    """Paper → its title, from the book's claims; before a colon stands its name."""
    files = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (book / "claims").glob("*.yaml"))
    return {file["paper"]: file["title"] for file in files}


def line(row: Mapping[str, Any]) -> str:
    """A claim in two lines of text: its sentence, and what was found.

    >>> row = dict(claim="It gains.", id="a-b", source="Table 1", chapter="02", verdict="holds", reason="", unit="%")
    >>> print(line(row | dict(direction="higher", paper_value=2.0, value=1.0, low=0.5, high=1.5, half_width=0.5)))
    It gains. (Table 1; a-b)
        holds: +1.0 ± 0.5 % (paper +2.0), 02
    """
    found = f"{sentence(row)}, {row['chapter']}" if row["chapter"] else sentence(row)
    return f"{row['claim']} ({row['source']}; {row['id']})\n    {found.replace('**', '')}"


def publish(root: Path, profile: str, *, published: bool = False) -> tuple[pd.DataFrame, Path]:
    """Gather the claims of a profile's executions and save them beside those; see `tables_of`."""
    table = gathered(root, tables_of(root, profile, published=published))
    return table, write_table(table, chapters.place(root, profile, published=published) / FILE)


# ---------------------------------------------------------------- the page


def complete(page: Path, table: pd.DataFrame) -> None:
    """Put the table, its filters and a CSV file to download into a copy of the page, where MARK stands."""
    write_table(table, page.with_name(FILE))
    known = {path.stem for path in page.parent.iterdir()}
    path = page.with_name(HISTORY)
    history = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    body = f"{{download}}`{FILE}`\n\n{chapters.raw(html(table, known, history, titles(page.parent)))}"
    still_open = chapters.raw(html_table(OPEN_HEAD, map(_open, outlook(table).to_dict("records"))))
    text = page.read_text(encoding="utf-8").replace(MARK, body).replace(OPEN_MARK, still_open)
    page.write_text(text, encoding="utf-8")


def html(
    table: pd.DataFrame,
    pages: Collection[str] = frozenset(),
    history: Mapping[str, Any] | None = None,
    papers: Mapping[str, str] | None = None,
) -> str:
    """The counts, the filters and the table.

    Args:
        pages: names of those that can be linked to.
        history: by claim, see HISTORY.
        papers: their titles, which begin with their names; else what the table calls them.
    """
    lines = (_line(row, pages, (history or {}).get(row["id"], {})) for _, row in table.iterrows())
    rows = html_table(HEAD, lines, attributes=' id="claims"')
    shown = {paper: title.partition(":")[0] for paper, title in (papers or {}).items()}
    return f"""{_counts(table, shown)}
<form id="claim-filters" style="display:flex;flex-wrap:wrap;gap:0.6em 1.2em;margin:1em 0">
{"".join(_select(name, table, shown) for name in FILTERS)}
<label>text <input name="text" type="search" size="24"></label>
<output aria-live="polite">{len(table)} claims</output>
</form>
{rows}"""


def _counts(table: pd.DataFrame, papers: Mapping[str, str]) -> str:
    counts = counted(table)
    verdicts = [name for name in WORDS if any(name in own for own in counts.values())]
    lines = []
    for paper, own in counts.items():
        numbers = [own.get(name, 0) for name in verdicts]
        name = cells([escape(papers.get(paper, paper))], "th")
        lines.append(f"<tr>{name}{cells(map(str, (*numbers, sum(numbers))))}</tr>")
    open_, short = (table["verdict"] == CANNOT_TELL).sum(), table.apply(falls_short, axis=1).sum()
    said = f"<p>Of {open_} claims that cannot be told, {short} fall short of the paper's number.</p>"
    return html_table(("paper", *map(_said, verdicts), "all"), lines, size="1em") + said


def _select(name: str, table: pd.DataFrame, papers: Mapping[str, str]) -> str:
    values = (
        [one for one in WORDS if (table[name] == one).any()] if name == "verdict" else sorted(set(table[name]) - {""})
    )
    said = {value: escape(papers.get(value) or _said(value)) for value in values}
    options = "".join(f'<option value="{escape(value)}">{text}</option>' for value, text in said.items())
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _line(row: Mapping[str, Any], pages: Collection[str], history: Mapping[str, Any]) -> str:
    chapter = escape(row["chapter"])
    link = f'<a href="{chapter}.html">{chapter}</a>' if row["chapter"] in pages else chapter
    verdict = f"<strong>{escape(_said(row['verdict']))}</strong>"
    remark = row["reason"] or (SHORT if falls_short(row) else "")
    verdict += f"<br>{escape(remark)}" if remark else ""
    claim = f"{escape(row['claim'])}<br><code>{escape(row['id'])}</code>{_past(row, history)}"
    texts = (claim, escape(row["source"]), escape(paper_number(row)), escape(estimate(row)), verdict, link)
    data = " ".join(f'data-{name}="{escape(row[name])}"' for name in FILTERS)
    return f"<tr {data}>{cells(texts)}</tr>"


def _said(verdict: str) -> str:
    return "not measured" if verdict == LEFT else verdict


def outlook(table: pd.DataFrame) -> pd.DataFrame:
    """The claims that cannot be told whose half width is more than is wanted, half of the paper's number or, where none
    is for the claim, the margin: their rows, with `wanted`, and with `for_seeds` and `for_clips`, how many of either
    would narrow it to that, as many as there are of the other; NaN where no number would. Of the error's variance
    (`inference.Variance`) more seeds leave the clips' share, more clips that of seeds.
    """
    number = table["paper_value"] / 2 * table["direction"].map(SIDES)
    table = table.assign(wanted=number.where(number > 0).fillna(table["margin"])).dropna(subset="seed_share")
    table = table[(table["verdict"] == CANNOT_TELL) & (table["half_width"] > table["wanted"])]
    kept = (table["wanted"] / table["half_width"]) ** 2
    for several, rest in (("seeds", table["clip_share"]), ("clips", table["seed_share"])):
        number = np.ceil(table[several] * (1 - rest) / (kept - rest))
        table[f"for_{several}"] = number.where((kept > rest) & (table[several] > 1))
    return table.loc[kept.sort_values(ascending=False, kind="stable").index]


def _open(row: Mapping[str, Any]) -> str:
    claim = f"{escape(row['claim'])}<br><code>{escape(row['id'])}</code>"
    numbers = (row[name] for name in ("seeds", "for_seeds", "clips", "for_clips"))
    counts = ["–" if np.isnan(number) else f"{number:,.0f}" for number in numbers]
    widths = (f"{row['half_width']:.2g}", f"{row['wanted']:.2g}{escape(unit_of(row))}")
    return f"<tr>{cells([claim, *widths, *counts])}</tr>"


# ---------------------------------------------------------------- what was trained again


def verified_file(root: Path) -> Path:
    """The file of a book's verifications."""
    return chapters.place(root, DEFAULT, published=True) / VERIFIED_FILE


def save_verified(rows: Sequence[Mapping[str, Any]], path: Path, *, processor: str) -> None:
    """Write rows of a processor in place of its earlier ones; those of other processors stay."""
    table = pd.DataFrame(rows, columns=list(VERIFIED))
    before = verified(path)
    others = before[before["processor"] != processor]
    whole = pd.concat([others, table], ignore_index=True) if len(others) else table
    write_table(whole, path)


def verified(path: Path) -> pd.DataFrame:
    """The table, VERIFIED; empty where there is none, or none that is whole: the next verification writes it anew."""
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values={"kept": "", "here": "", "difference": ""})
    except (OSError, ValueError):
        return pd.DataFrame(columns=list(VERIFIED))
    return table if list(table.columns) == list(VERIFIED) else pd.DataFrame(columns=list(VERIFIED))


def tell_verified(page: Path, path: Path) -> None:
    """Say on a copy of the page, where MARK stands, which runs were trained again, on what, and how they ended."""
    table = verified(path)
    said = "No kept run has been trained again yet: `pullpush verify` does it."
    if len(table):
        shutil.copyfile(path, page.with_name(VERIFIED_FILE))
        parts = [_of_processor(str(name), rows) for name, rows in table.groupby("processor", sort=False)]
        said = "\n\n".join([*parts, f"{{download}}`{VERIFIED_FILE}`"])
    page.write_text(page.read_text(encoding="utf-8").replace(VERIFIED_MARK, said), encoding="utf-8")


def _of_processor(name: str, table: pd.DataFrame) -> str:
    runs = list(table.groupby(list(RUN), sort=False))
    inside = int(table["within"].sum())
    dates = sorted(set(table["date"]))
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    said = f"Trained again on {name}, {when}: {len(runs)} runs, {inside} of {len(table)} numbers within their band."
    is_open = "" if inside == len(table) else " open"
    body = html_table(VERIFIED_HEAD, (_of_run(key, rows) for key, rows in runs))
    return chapters.raw(f"<details{is_open}><summary>{escape(said)}</summary>\n{body}</details>")


def _of_run(key: Sequence[Any], rows: pd.DataFrame) -> str:
    chapter, experiment, system, point, seed = (str(part) for part in key)
    told = ", ".join(part for part in (f"{chapter}/{experiment}", system, point, f"seed {seed}") if part)
    edge = rows.loc[(rows["difference"].abs() / rows["band"]).idxmax()]
    nearest = f"{edge['metric']}: {edge['kept']:.4g} → {edge['here']:.4g}, band ± {edge['band']:.2g}".replace("-", "−")
    texts = (told, str(len(rows)), str(int(rows["within"].sum())), nearest)
    return f"<tr>{cells(map(escape, texts))}</tr>"


def _past(row: Mapping[str, Any], history: Mapping[str, Any]) -> str:
    """When a claim was judged first, and what it said before its test was changed, and why that was."""
    if not history:
        return ""
    first = history["first"]
    text = (
        f"<br><small>judged since {first['date']}, {first['seeds']} {'seeds' if first['seeds'] > 1 else 'seed'}</small>"
    )
    items = [
        f"<li>until {one['until']} <strong>{escape(one['verdict'])}</strong>, "
        f"{escape(estimate({**one, 'half_width': (one['high'] - one['low']) / 2, 'unit': row['unit']}))}, "
        f"{one['seeds']} seeds; then other {escape(one['changed'])}: {escape(one['why'])}</li>"
        for one in history.get("before", ())
    ]
    return text + (
        f"<details><summary>judged otherwise before</summary><ul>{''.join(items)}</ul></details>" if items else ""
    )

"""What was found, said with its number: never typed, always a cell of a table.

`book/remember.yaml` has for each page the sentence of its opening and those of its end. A page shows the first as it
was published and, at its end, by the tables that it has written itself, above as well:

    findings.found("02-svr")
    ...
    findings.remember(book)

`book/findings.yaml` has one sentence a chapter, for README and the site.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from IPython.display import Markdown, display, update_display

from pullpush.lab.root import DEFAULT, find_root
from pullpush.lab.session import Session

FILE, FINDINGS = "remember.yaml", "findings.yaml"
CLAIMS = "claims.csv"
REFERENCE = re.compile(r"\{([\w-]+)(!?)(?::(\w+))?\}")
Read = Callable[[str], pd.DataFrame]


class Finding(NamedTuple):
    """What README's table and a card say: pages, question, answer, its first number with its interval, a figure."""

    pages: tuple[str, ...]
    question: str
    answer: str
    number: str
    figure: str


def found(page: str) -> None:
    """Show what was found, with the published number, and in its place this execution's when `remember` is reached."""
    item = _of(page)
    display(Markdown(f"**Found** *(as published)*. {_told(page, item, item['found'])}"), display_id=page)


def remember(book: Session) -> None:
    """Show what to remember, with this execution's numbers; with the published ones where it has none or not enough.

    Only the profile that is published has the seeds and clips that the sentences were written for.
    """
    item, out = _of(book.chapter), book.out if book.settings.name == DEFAULT else None
    if out:
        update_display(Markdown(f"**Found.** {_told(book.chapter, item, item['found'], out)}"), display_id=book.chapter)
    lines = "\n".join(f"* {_told(book.chapter, item, text, out)}" for text in item["remember"])
    display(Markdown(f"**What to remember.**\n\n{lines}"))


def opening(page: str, read: Read) -> str:
    """What a page opens with, with its numbers; see `sentence`."""
    item = _of(page)
    return sentence(item["found"], item.get("cells", {}), read)


def findings(root: Path, read: Read) -> Iterator[Finding]:
    """All findings that the tables of an execution have, filled in; read: a table by the name of its file."""
    for item in yaml.safe_load((root / "book" / FINDINGS).read_text(encoding="utf-8")):
        names = re.findall(r"\{(\w+)\}", item["answer"])
        try:
            rows = {name: row_of(read(item[name]["file"]), item[name]) for name in names}
        except (FileNotFoundError, LookupError):
            continue
        words = {name: written(item[name], rows[name]) for name in names}
        number = ranged(item[names[0]], rows[names[0]])
        yield Finding(tuple(item["pages"]), item["question"], item["answer"].format(**words), number, item["figure"])


def sentence(text: str, cells: Mapping[str, Any], read: Read) -> str:
    """A sentence with its numbers. {name}: a cell with its 95 % interval, {name!}: without; a claim's by its id.

    Args:
        text: the sentence; {id:2} has two digits, in place of one.
        cells: name → what `written` takes, with `file` and `row`.
        read: a table by the name of its file.

    Raises:
        LookupError: none or several rows are the one.
        FileNotFoundError: there is no such table.
    """

    def number(match: re.Match[str]) -> str:
        name, bare, digits = match.groups()
        claim = {"file": CLAIMS, "row": {"id": name}, "as": 1}
        cell: dict[str, Any] = {**cells.get(name, claim), **({"as": int(digits)} if digits else {})}
        row = row_of(read(cell["file"]), cell)
        return written(cell, row) + ("" if bare else interval(cell, row))

    return REFERENCE.sub(number, text)


def row_of(table: pd.DataFrame, cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one row of a table that a cell names; LookupError if there is none or there are several."""
    for column, value in cell["row"].items():
        table = table[table[column] == value]
    if len(table) != 1:
        raise LookupError(f"{len(table)} rows of {cell['file']} are {cell['row']}, where one is wanted")
    return table.iloc[0]


def written(cell: Mapping[str, Any], row: Mapping[str, Any], column: str = "value") -> str:
    """A number as its finding says it: a fraction as "percent", as "points", or with so many digits, after `times`.

    Points have the direction that the sentence names, so that a loss has no sign.

    >>> written({"as": "points"}, {"value": -0.248}), written({"as": 2, "times": 10}, {"value": -0.298248})
    ('24.8', '−2.98')
    """
    of = cell.get("column", "value")
    value = cell.get("times", 1) * row[of if column == "value" else column]
    if cell["as"] == "percent":
        return f"{round(100 * value, 6):.0f} %".replace("-", "−")
    falls = cell["as"] == "points" and row[of] < 0
    text = f"{100 * (-value if falls else value):.1f}" if cell["as"] == "points" else f"{value:.{cell['as']}f}"
    return text.replace("-", "−")


def interval(cell: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """The number's interval, or nothing where it has none, as of a single seed.

    >>> interval({"as": "points"}, {"value": -0.248, "low": -0.3, "high": 0.01})
    ' [−1.0, 30.0]'
    """
    ends = [row.get("low"), row.get("high")]
    if any(pd.isna(end) for end in ends) or ends[0] == ends[1]:
        return ""
    turned = cell.get("times", 1) < 0 or (cell["as"] == "points" and row[cell.get("column", "value")] < 0)
    low, high = (written(cell, row, column) for column in (("high", "low") if turned else ("low", "high")))
    return f" [{low}, {high}]".replace(" %", "")


def ranged(cell: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A number with its unit and its interval, if it has one, with a digit more where the interval's ends agree.

    >>> ranged({"as": "points"}, {"value": -0.248, "low": -0.3, "high": 0.01})
    '24.8 points [−1.0, 30.0]'
    >>> ranged({"as": 0}, {"value": 96.17, "low": 96.14, "high": 96.2, "unit": "%"})
    '96.2 % [96.1, 96.2]'
    """
    unit = {"percent": " %", "points": " points"}.get(cell["as"], f" {row['unit']}" if "unit" in row else "")
    ends = interval(cell, row)
    if ends and len(set(ends.strip(" []").split(", "))) == 1:
        finer = {"as": 1, "times": 100 * cell.get("times", 1)} if cell["as"] == "percent" else {"as": cell["as"] + 1}
        return ranged({**cell, **finer}, {**row, "unit": unit.strip()})
    return written(cell, row).removesuffix(" %") + unit + ends


def _of(page: str) -> Mapping[str, Any]:
    return yaml.safe_load((find_root() / "book" / FILE).read_text(encoding="utf-8"))[page]


def _told(page: str, item: Mapping[str, Any], text: str, out: Path | None = None) -> str:
    """A sentence with the numbers of an execution in `out`, else the published, else a word that there are none."""
    reads = [partial(_read, out, claims=f"{page}.{CLAIMS}")] if out else []
    for read in (*reads, partial(_read, find_root() / "executed" / DEFAULT)):
        with suppress(FileNotFoundError, LookupError):
            return sentence(text, item.get("cells", {}), read)
    return f"Its number is not published yet; it stands at the end. ({REFERENCE.sub('–', text)})"


def _read(folder: Path, file: str, *, claims: str = CLAIMS) -> pd.DataFrame:
    return pd.read_csv(folder / (claims if file == CLAIMS else file))

"""One sentence a chapter with its number: `book/findings.yaml`, from stored tables, for README and the site."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pullpush.lab.findings import Read, interval, row_of, written

FILE = "findings.yaml"


class Finding(NamedTuple):
    """What README's table and a card say: pages, question, answer, its first number with its interval, a figure."""

    pages: tuple[str, ...]
    question: str
    answer: str
    number: str
    figure: str


def findings(root: Path, read: Read) -> Iterator[Finding]:
    """All findings that the tables of an execution have, filled in; read: a table by the name of its file."""
    for item in yaml.safe_load((root / "book" / FILE).read_text(encoding="utf-8")):
        names = re.findall(r"\{(\w+)\}", item["answer"])
        try:
            rows = {name: row_of(read(item[name]["file"]), item[name]) for name in names}
        except (FileNotFoundError, LookupError):
            continue
        words = {name: written(item[name], rows[name]) for name in names}
        number = ranged(item[names[0]], rows[names[0]])
        yield Finding(tuple(item["pages"]), item["question"], item["answer"].format(**words), number, item["figure"])


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


def cards(found: Sequence[Finding], pictures: Mapping[str, str]) -> str:
    """The cards of the first page: question, sentence, number, small figure, link. pictures: figure → its `<img>`."""
    blocks = [
        f'<a class="finding" href="{one.pages[0]}.html"><small>{escape(one.question)}</small>'
        f"<strong>{escape(one.answer)}</strong>{pictures.get(one.figure, '')}"
        f"<small>{escape(one.number)}{', 95 % interval' if '[' in one.number else ''}</small></a>"
        for one in found
    ]
    return f'<div class="findings">{"".join(blocks)}</div>'

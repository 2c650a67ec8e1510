"""What the papers claim, as data: `book/claims/<paper>.yaml`, one claim an entry. ledger.py judges them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.lab.paper import paper_table
from pullpush.lab.root import find_root

DIRECTIONS = ("higher", "lower", "equal", "exists")
SOURCE = re.compile(r"(Table|Figure|Eq\.|Section|Appendix) [\w.–-]+")
JUDGED = ("chapter", "experiment", "system", "baseline", "metric", "where", "baseline_where", "measure")
VALUE = ("table", "where", "system", "at", "minus", "over", "note_contains")


class ClaimError(PullPushError, ValueError):
    """A claim that is not well written, or a chapter that judges its claims nowhere or twice."""


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim of one paper; `book/claims/README.md` explains the fields."""

    id: str
    paper: str
    claim: str
    source: tuple[str, ...]
    direction: str
    unit: str = ""
    margin: float | None = None
    value: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, Any] = field(default_factory=dict)
    reason: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None

    @property
    def chapter(self) -> str | None:
        """The chapter that judges the claim, or says why not; None where no chapter does."""
        return (self.judged or self.reason).get("chapter")

    @property
    def relative(self) -> bool:
        """Whether it speaks of a ratio minus 1, not of a difference."""
        return "over" in self.value

    @property
    def scale(self) -> float:
        """What turns a measured fraction into the claim's unit: 100 for points and %, otherwise 1."""
        return 100.0 if self.unit in ("points", "%") else 1.0


# ---------------------------------------------------------------- the paper's number


def paper_value(claim: Claim) -> float | None:
    """What the paper's tables say: a cell (or mean of cells), a difference, or a ratio minus 1; None without `value`.

    In the claim's unit: a ratio is given in per cent where the unit is %.

    `paper_value(find("supclap-t1-infonce-bi-dynamic-t2a-r1"))` is the bi-DynamicSVR row minus the InfoNCE row.

    Raises:
        ClaimError: no row, no number, or unequal numbers of rows on the two sides.
    """
    value = claim.value
    if not value:
        return None
    base = dict(value.get("where", {}))
    base |= {"note_contains": value["note_contains"]} if "note_contains" in value else {}
    system = {"system": value["system"]} if "system" in value else {}
    ours = _cells(claim, {**base, **system, **value.get("at", {})})
    operation = next((name for name in ("minus", "over") if name in value), None)
    side = value[operation] if operation else 0.0
    if isinstance(side, Real):  # no other side, or a constant such as 100
        return float(ours.mean() - side)
    other = side if isinstance(side, Mapping) else {**value.get("at", {}), "system": side}
    theirs = _cells(claim, {**base, **system, **other})
    if len(ours) != len(theirs):
        raise _fault(claim, f"value: {len(ours)} rows {operation} {len(theirs)}: narrow `where` until both sides match")
    if operation == "over":
        return float(ours.mean() / theirs.mean() - 1) * claim.scale
    return float(ours.mean() - theirs.mean())


def _cells(claim: Claim, filters: Mapping[str, Any]) -> np.ndarray:
    """The numbers of the rows that pass all filters (column → value or list of values), `(rows,)`, rows ≥ 1."""
    try:
        table = _table(claim.paper, claim.value["table"])
    except DataNotFoundError as error:
        raise _fault(claim, f"value: {error}") from None
    kept = np.ones(len(table), bool)
    for column, wanted in filters.items():
        wanted = [str(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        if column == "note_contains":
            notes = ";" + table["note"].fillna("") + ";"
            found = notes.map(lambda note, wanted=wanted: all(text in note for text in wanted))
        elif column in table.columns:
            known = table[column].astype(str)
            found = known.isin(wanted) & set(wanted).issubset(known)  # a misspelt value of a list is no smaller list
        else:
            raise _fault(claim, f"value: no column {column!r}: use one of {', '.join(table.columns)}, note_contains")
        if not found.any():
            have = sorted(set(table["note" if column == "note_contains" else column].astype(str)))
            near = [hit for one in wanted if one not in have for hit in get_close_matches(one, have, 3, 0.3)] or have
            asked = ", ".join(wanted)
            raise _fault(claim, f"value: table {claim.value['table']} has no {column} {asked}: nearest: {near[:9]}")
        kept &= found.to_numpy()
    numbers = table.loc[kept, "value"].to_numpy(float)
    if not len(numbers) or np.isnan(numbers).any():
        text = f"value: table {claim.value['table']} has no row with a number where {filters}: relax the filters"
        raise _fault(claim, text)
    return numbers


@lru_cache(maxsize=128)
def _table(paper: str, number: int) -> pd.DataFrame:
    return paper_table(paper, number)


# ---------------------------------------------------------------- reading


def load(paper: str, *, folder: Path | None = None) -> tuple[Claim, ...]:
    """The claims of one paper from `<folder>/<paper>.yaml` (default `book/claims`), checked, its numbers included.

    Raises:
        UnknownNameError: no such file.
        ClaimError: names file and claim, and says what to do.
    """
    folder = _folder(folder)
    path = folder / f"{paper}.yaml"
    if not path.is_file():
        raise unknown("paper with claims", paper, (one.stem for one in folder.glob("*.yaml")))
    return _read(path, path.stat().st_mtime_ns)


def load_all(*, folder: Path | None = None) -> tuple[Claim, ...]:
    """The claims of all papers, in the order of the files' names; ids are unique over all of them."""
    every = [claim for path in sorted(_folder(folder).glob("*.yaml")) for claim in load(path.stem, folder=folder)]
    return _unique(every)


def of_chapter(name: str, *, folder: Path | None = None) -> tuple[Claim, ...]:
    """The claims that a chapter judges or gives the reason of; UnknownNameError if no claim names the chapter."""
    every = load_all(folder=folder)
    if found := tuple(claim for claim in every if claim.chapter == name):
        return found
    raise unknown("chapter with claims", name, {claim.chapter for claim in every if claim.chapter})


def find(id: str, *, folder: Path | None = None) -> Claim:
    """The claim of this id; UnknownNameError with the nearest ids."""
    every = {claim.id: claim for claim in load_all(folder=folder)}
    if id not in every:
        raise unknown("claim", id, every)
    return every[id]


def _folder(folder: Path | None) -> Path:
    return folder or find_root() / "book" / "claims"


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> tuple[Claim, ...]:
    try:
        raw = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ClaimError(f"{path.name}: no YAML: {error}") from None
    if not isinstance(raw, dict) or set(raw) != {"paper", "title", "cite", "claims"}:
        raise ClaimError(f"{path.name}: needs the keys paper, title, cite and claims, and no others")
    if raw["paper"] != path.stem:
        raise ClaimError(f"{path.name}: paper is {raw['paper']!r}: name it as the file, {path.stem!r}")
    return _unique([_claim(path.stem, item) for item in raw["claims"]])


def _claim(paper: str, item: Any) -> Claim:
    """One claim from its mapping; every fault of the schema is a ClaimError."""
    if not isinstance(item, dict) or not item.get("id"):
        raise ClaimError(f"{paper}.yaml: a claim must be a mapping with an id, got {item!r}")
    sources = item.get("source") or ()
    sources = tuple(sources) if isinstance(sources, list | tuple) else (sources,)
    stub = Claim(str(item["id"]), paper, "", sources, "")
    _keys(stub, "the claim", item, [field.name for field in fields(Claim) if field.name != "paper"])
    judged, reason, direction = item.get("judged") or {}, item.get("reason") or {}, item.get("direction")
    value = item.get("value", {"table": 0, "at": {}})
    for what, given, allowed in (("judged", judged, JUDGED), ("reason", reason, ("chapter", "why"))):
        _keys(stub, what, given, allowed)
    _keys(stub, "value", value, VALUE)
    contrast, by_name = set(judged) - {"chapter"}, [value.get(name) for name in ("minus", "over")]
    faults = {
        f"the id must start with {paper}-": not stub.id.startswith((f"{paper}-", f"{paper.replace('_', '-')}-")),
        "has no claim: say it in a sentence": not item.get("claim"),
        "has a number and no unit: add one": not item.get("unit") and bool(judged or "value" in item),
        "has no source that can be found: write Table 1, Figure 2, Eq. 3 or Section 4.1, or a list of these": (
            not sources or not all(SOURCE.fullmatch(str(one)) for one in sources)
        ),
        f"direction is {direction!r}: use one of {', '.join(DIRECTIONS)}": direction not in DIRECTIONS,
        "needs exactly one of judged and reason: say what judges it, or why nothing does": bool(judged) == bool(reason),
        "judged needs a chapter": bool(judged) and "chapter" not in judged,
        "judged needs either experiment, system and metric, or a measure alone": bool(judged)
        and (contrast != {"measure"} and not {"experiment", "system", "metric"} <= contrast - {"measure"} == contrast),
        "reason needs a why": bool(reason) and not reason.get("why"),
        "a margin goes with direction: equal alone: leave it out": "margin" in item and direction != "equal",
        "direction: equal needs a margin": bool(judged) and direction == "equal" and "margin" not in item,
        "the margin must be a number above 0; YAML wants 1.0e-5 for 1e-5": (
            not isinstance(item.get("margin", 1), Real) or not item.get("margin", 1) > 0
        ),
        "value needs a table, one of system, at and where, and not both of minus and over": (
            "table" not in value or not {"system", "at", "where"} & set(value) or {"minus", "over"} <= set(value)
        ),
        "value: minus and over can name a system only beside `system`; give a mapping of columns": (
            "system" not in value and any(isinstance(side, str | list) for side in by_name)
        ),
    }
    for text, wrong in faults.items():
        if wrong:
            raise _fault(stub, text)
    given: dict[str, Any] = {name: value for name, value in item.items() if value is not None}
    claim = Claim(**given | {"paper": paper, "source": sources})
    number = paper_value(claim)
    if number is not None and not claim.note and not agrees(number, claim):
        text = f"the paper's value is {number:+.4g}, but direction is {direction}: correct one of them, or add a note"
        raise _fault(claim, text)
    return claim


def agrees(value: float, claim: Claim) -> bool:
    """Whether the paper's own number is what the claim says of it."""
    if claim.direction == "equal":
        return claim.margin is None or abs(value) <= claim.margin
    return value < 0 if claim.direction == "lower" else value > 0


def _keys(claim: Claim, what: str, given: Any, allowed: Iterable[str]) -> None:
    if not isinstance(given, dict):
        raise _fault(claim, f"{what} must be a mapping, got {given!r}")
    if strange := set(given).difference(allowed):
        raise _fault(claim, f"{what} has unknown keys {sorted(strange)}: use {', '.join(allowed)}")


def _unique(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    seen: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in seen:
            raise _fault(claim, f"this id stands twice (also in {seen[claim.id].paper}.yaml): give one of them another")
        seen[claim.id] = claim
    return tuple(seen.values())


def _fault(claim: Claim, text: str) -> ClaimError:
    return ClaimError(f"{claim.paper}.yaml: {claim.id}: {text}")

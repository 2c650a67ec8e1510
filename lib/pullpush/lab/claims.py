"""What the papers claim, as data: `book/claims/<paper>.yaml`, one claim an entry. ledger.py judges them."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.lab.paper import paper_rows
from pullpush.lab.root import find_root

LEAST = 0.5  # points
KEYS = {"paper": str, "title": str, "cite": str, "claims": list}  # of a file
SOURCE = re.compile(r"(Table|Figure|Eq\.|Section|Appendix) [\w.–-]+")
Texts = str | list[str]
Scalar = str | int | float
Point = dict[str, Scalar | list[Scalar]]


class Value(TypedDict, total=False):
    """Where the paper's number is."""

    table: int
    where: Point
    system: Texts
    at: Point
    minus: Texts | float | Point
    over: Texts | float | Point
    note_contains: Texts


class Side(TypedDict, total=False):
    """What is compared, see contrasts.py."""

    experiment: Texts
    system: Texts
    baseline: Texts
    metric: Texts
    where: Point
    baseline_where: Point


class Judged(Side, total=False):
    """What judges a claim."""

    chapter: str
    measure: str
    less: Side
    relative: bool
    pooled: dict[str, Point]


class ClaimError(PullPushError, ValueError):
    """A claim that is not well written, or a chapter that judges its claims nowhere or twice."""


@dataclass(frozen=True, eq=False, config=ConfigDict(extra="forbid"))
class Claim:
    """One claim of one paper; `book/claims/README.md` explains the fields."""

    id: str
    paper: str
    claim: Annotated[str, Field(min_length=1)]
    source: Annotated[tuple[str, ...], BeforeValidator(lambda one: (one,) if isinstance(one, str) else tuple(one))]
    direction: Literal["higher", "lower", "equal", "exists"]
    unit: str = ""
    margin: Annotated[PositiveFloat | None, Field(strict=True)] = None
    evidence: Literal["runs", "count", "identity"] = "runs"
    family: str = ""
    withheld: str = ""
    value: Value = Field(default_factory=Value)
    judged: Judged = Field(default_factory=Judged)
    reason: dict[Literal["chapter", "why"], str] = Field(default_factory=dict)
    note: str | None = None

    @model_validator(mode="after")
    def _fields_agree(self) -> "Claim":
        contrast, value = {*self.judged} - {"chapter"}, {*self.value}
        names = (f"{self.paper}-", f"{self.paper.replace('_', '-')}-")
        equal = self.direction == "equal"
        named = any(isinstance(self.value.get(side), str | list) for side in ("minus", "over"))
        faults = {
            f"the id must start with {self.paper}-": not self.id.startswith(names),
            "has a number and no unit: add one": not self.unit and bool(self.judged or self.value),
            "has no source that can be found: write Table 1, Figure 2, Eq. 3 or Section 4.1, or a list of these": (
                not all(map(SOURCE.fullmatch, self.source))
            ),
            "needs exactly one of judged and reason: say what judges it, or why nothing does": (
                bool(self.judged) == bool(self.reason)
            ),
            "judged needs a chapter": bool(self.judged) and "chapter" not in self.judged,
            "reason needs a why": bool(self.reason) and not self.reason.get("why"),
            "judged needs either experiment, system and metric, or a measure alone": bool(self.judged)
            and contrast != {"measure"}
            and not {"experiment", "system", "metric"} <= contrast - {"measure"} == contrast,
            "evidence: identity needs a note that says why it cannot fail": (
                self.evidence == "identity" and not self.note
            ),
            "judged: less replaces some of experiment, system, baseline, metric, where and baseline_where": (
                "less" in self.judged and not self.judged["less"]
            ),
            "direction: equal needs a margin": bool(self.judged) and equal and self.margin is None,
            "value needs a table, one of system, at and where, and not both of minus and over": bool(value)
            and ("table" not in value or not value & {"system", "at", "where"} or {"minus", "over"} <= value),
            "value: minus and over can name a system only beside `system`; give a mapping of columns": (
                named and "system" not in value
            ),
        }
        for text, wrong in faults.items():
            if wrong:
                raise ValueError(text)
        return self

    @property
    def chapter(self) -> str | None:
        """The chapter that judges the claim, or says why not; None where no chapter does."""
        return self.judged.get("chapter", self.reason.get("chapter"))

    @property
    def relative(self) -> bool:
        """Whether it speaks of a ratio minus 1, not of a difference."""
        return "over" in self.value

    @property
    def scale(self) -> float:
        """What turns a measured fraction into the claim's unit: 100 for points and %, otherwise 1."""
        return 100.0 if self.unit in ("points", "%") else 1.0

    @property
    def within(self) -> tuple[str, str]:
        """The family whose p values are adjusted together: the paper and, unless declared, the claim's first source."""
        return self.paper, self.family or self.source[0]

    @property
    def least(self) -> float | None:
        """The margin inside which an effect is none, in the claim's unit; half a point of recall unless declared."""
        return self.margin or (LEAST if self.unit == "points" and self.direction != "equal" else None)


def row_of(claim: Claim) -> dict[str, Any]:
    """A claim in a table: what it says; paper_value (the paper's number) and margin are NaN where it has none."""
    row: dict[str, Any] = {name: getattr(claim, name) for name in ("id", "paper", "claim", "unit", "direction")}
    paper, margin = (np.nan if number is None else number for number in (paper_value(claim), claim.least))
    return row | {"source": ", ".join(claim.source), "paper_value": paper, "margin": margin}


# ---------------------------------------------------------------- the paper's number


def paper_value(claim: Claim) -> float | None:
    """What the paper's tables say: a cell (or mean of cells), a difference, a ratio minus 1; None without `value`."""
    value = claim.value
    if not value:
        return None
    base = dict(value.get("where", {}))
    base |= {"note_contains": value["note_contains"]} if "note_contains" in value else {}
    system = {"system": value["system"]} if "system" in value else {}
    ours = _cells(claim, {**base, **system, **value.get("at", {})})
    operation = next((name for name in ("minus", "over") if name in value), None)
    side = value.get("minus", value.get("over", 0.0))
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
        rows = paper_rows(claim.paper, claim.value["table"])
    except DataNotFoundError as error:
        raise _fault(claim, f"value: {error}") from None
    columns, kept = next(iter(rows), {}), np.ones(len(rows), bool)
    for column, wanted in filters.items():
        wanted = [str(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        if column == "note_contains":
            known = [str(row["note"]) for row in rows]
            notes = (f";{row['note']};" if isinstance(row["note"], str) else ";;" for row in rows)
            found = [all(text in note for text in wanted) for note in notes]
        elif column in columns:
            known = [str(row[column]) for row in rows]  # a misspelt value of a list is no smaller list:
            found = [text in wanted for text in known] if set(wanted).issubset(known) else []
        else:
            raise _fault(claim, f"value: no column {column!r}: use one of {', '.join(columns)}, note_contains")
        if not any(found):
            have = sorted(set(known))
            near = [hit for one in wanted if one not in have for hit in get_close_matches(one, have, 3, 0.3)] or have
            asked = ", ".join(wanted)
            raise _fault(claim, f"value: table {claim.value['table']} has no {column} {asked}: nearest: {near[:9]}")
        kept &= found
    numbers = np.array([row["value"] for row in rows], float)[kept]
    if not len(numbers) or np.isnan(numbers).any():
        text = f"value: table {claim.value['table']} has no row with a number where {filters}: relax the filters"
        raise _fault(claim, text)
    return numbers


# ---------------------------------------------------------------- reading


def load(paper: str, *, folder: Path | None = None) -> tuple[Claim, ...]:
    """The claims of one paper from `<folder>/<paper>.yaml` (default `book/claims`), checked, its numbers included."""
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


def _folder(folder: Path | None) -> Path:
    return folder or find_root() / "book" / "claims"


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> tuple[Claim, ...]:
    try:
        raw = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ClaimError(f"{path.name}: no YAML in UTF-8: {error}") from None
    if not isinstance(raw, dict) or {name: type(value) for name, value in raw.items()} != KEYS:
        raise ClaimError(f"{path.name}: needs the texts paper, title and cite, a list of claims, and no other keys")
    if raw["paper"] != path.stem:
        raise ClaimError(f"{path.name}: paper is {raw['paper']!r}: name it as the file, {path.stem!r}")
    return _unique([_claim(path.stem, item) for item in raw["claims"]])


def _claim(paper: str, item: Any) -> Claim:
    """One claim from its mapping; every fault of the schema is a ClaimError."""
    if not isinstance(item, dict) or not item.get("id"):
        raise ClaimError(f"{paper}.yaml: a claim must be a mapping with an id, got {item!r}")
    given = {name: value for name, value in item.items() if value is not None}
    try:
        claim = _CLAIM.validate_python(given | {"paper": paper})
    except ValidationError as error:
        (first, *_) = error.errors()
        said = ": ".join([*map(str, first["loc"]), first["msg"].removeprefix("Value error, ")])
        raise ClaimError(f"{paper}.yaml: {item['id']}: {said}") from None
    number = paper_value(claim)
    if number is not None and not claim.note and not agrees(number, claim):
        direction = claim.direction
        text = f"the paper's value is {number:+.4g}, but direction is {direction}: correct one of them, or add a note"
        raise _fault(claim, text)
    return claim


_CLAIM = TypeAdapter(Claim)


def agrees(value: float, claim: Claim) -> bool:
    """Whether the paper's own number is what the claim says of it."""
    if claim.direction == "equal":
        return claim.margin is None or abs(value) <= claim.margin
    return value < 0 if claim.direction == "lower" else value > 0


def _unique(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    seen: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in seen:
            raise _fault(claim, f"this id stands twice (also in {seen[claim.id].paper}.yaml): give one of them another")
        seen[claim.id] = claim
    return tuple(seen.values())


def _fault(claim: Claim, text: str) -> ClaimError:
    return ClaimError(f"{claim.paper}.yaml: {claim.id}: {text}")

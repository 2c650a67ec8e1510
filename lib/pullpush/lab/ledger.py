"""The ledger in which a chapter judges its claims: measured differences in, verdicts and sentences out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pullpush.errors import unknown
from pullpush.lab import gaps
from pullpush.lab.claims import Claim, ClaimError, agrees, load_all, of_chapter, row_of
from pullpush.lab.contrasts import Experiments, contrast, needed
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.paper import form
from pullpush.lab.root import workplace
from pullpush.metrics import inference

LEFT = "–"  # the verdict on what was not measured
UNMEASURED = "could not be measured on these data"
SHORT = "falls short of the paper"  # of what cannot be told, yet is below the paper's number
CANNOT_FAIL = "cannot fail"  # the verdict on what follows from definitions, where the code agrees
WORDS = {
    "holds": "holds",
    "holds, smaller": "holds, smaller than in the paper",
    "no effect": "shows no effect here",
    "reversed": "is reversed",
    "cannot tell": "cannot be told from these runs",
    CANNOT_FAIL: "cannot fail, and is a test of the code",
    LEFT: "is not measured here",
}
SIDES = {"higher": 1, "exists": 1, "lower": -1, "equal": 0}  # of zero, on which a number is for a claim
SHOWN = ("id", "paper", "claim", "source", "unit", "direction", "margin", "paper_value")
NUMBERS = ("value", "low", "high", "half_width", "p", "p_holm", "seeds", "clips", "seed_share", "clip_share")
COLUMNS = [*SHOWN, *NUMBERS, "verdict", "reason", "chapter"]


class Measure(NamedTuple):
    """What a claim is about that no single contrast of two systems is.

    needs: names of experiments; of: their scores → the difference.
    """

    needs: Sequence[str]
    of: Callable[[Experiments], inference.Difference]


class Ledger:
    """A chapter's claims and what its measurements say of them.

    `ledger = Ledger("02-svr")`, then `judge`, `judge_by` and `leave` until `check()` passes; `table()` holds
    the verdicts. A Difference (`pullpush.metrics.inference`) comes as measured: recall, accuracy and ratios minus 1 as
    fractions. Claims in points or % are shown times 100, and the paper's number and the margin compared accordingly.

    The p values of a family (`Claim.within`: one table of a paper, say) are adjusted by Holm: *holds* and *reversed*
    need an adjusted p below 0.05 besides the interval. Claims of a family that other chapters judge count with the p of
    their published execution. A claim of equality is judged by its margin and the interval alone, for its p tests
    another hypothesis; so are counts, which have none, and what cannot fail.
    """

    def __init__(self, chapter: str, *, folder: Path | None = None, published: pd.DataFrame | None = None):
        """published: claims as others judged them, with id and p; default: the book's, see `published_claims`."""
        self.chapter = chapter
        every = load_all(folder=folder)
        self.claims = {claim.id: claim for claim in of_chapter(chapter, folder=folder)}
        p = (published_claims() if published is None else published).set_index("id")["p"].dropna()
        self._elsewhere = {
            claim.id: (claim, float(p[claim.id])) for claim in every if claim.chapter != chapter and claim.id in p
        }
        self._found: dict[str, list[Any]] = {id: [] for id in self.claims}  # Differences, or why there is none

    @property
    def judged(self) -> tuple[Claim, ...]:
        """The chapter's claims that something judges."""
        return tuple(claim for claim in self.claims.values() if claim.judged)

    @property
    def open(self) -> tuple[Claim, ...]:
        """Those of `judged` that are not judged yet."""
        return tuple(claim for claim in self.judged if not self._found[claim.id])

    def judge(self, name: str, difference: inference.Difference) -> None:
        """Judge the claim of this id, or all claims of this measure; the same difference again changes nothing."""
        self._note(self._named(name), difference)

    def judge_by(self, scores: Experiments, measures: Mapping[str, Measure], name: str) -> None:
        """Judge every claim that needs an experiment, as soon as all that it needs are there: by its measure, if it
        names one, else by its contrast. Leave it, with the reason, where one was not kept, or lacks the system, the
        point or the metric in this profile.

        Args:
            scores: of all experiments so far, by name.
            measures: by the names that claims give in `measure`.
            name: of the experiment.
        """
        outcomes: dict[str, inference.Difference | str] = {}
        for claim in self.judged:
            key = claim.judged.get("measure", claim.id)
            of = partial(contrast, judged=claim.judged, relative=claim.relative)
            measure = measures.get(key) or Measure(needed(claim.judged), of)
            if name in measure.needs and scores.keys() >= {*measure.needs}:
                if key not in outcomes:
                    outcomes[key] = outcome_of(measure, scores)
                self._note([claim], outcomes[key])

    def leave(self, name: str, why: str) -> None:
        """Leave a claim, or all of a measure or experiment, without a verdict in this run, and say why."""
        self._note(self._named(name, experiments=True), str(why))

    def _named(self, name: str, *, experiments: bool = False) -> list[Claim]:
        names = {
            claim: {claim.id, claim.judged.get("measure", claim.id), *(needed(claim.judged) if experiments else ())}
            for claim in self.judged
        }
        if found := [claim for claim, own in names.items() if name in own]:
            return found
        kind = "claim or measure or experiment" if experiments else "claim or measure"
        raise unknown(f"{kind} to judge in {self.chapter}", name, set().union(*names.values()))

    def _note(self, claims: Iterable[Claim], outcome: Any) -> None:
        for claim in claims:
            if outcome not in self._found[claim.id]:
                self._found[claim.id].append(outcome)

    def check(self) -> None:
        """Raise ClaimError if a claim of the chapter is judged nowhere, or twice with different outcomes.

        Where something could not be measured (gaps.py) claims that nothing could judge are left.
        """
        for claim in self.open if gaps.found() else ():
            self._note([claim], UNMEASURED)
        twice = [id for id, outcomes in self._found.items() if len(outcomes) > 1]
        nowhere = [claim.id for claim in self.open]
        if twice or nowhere:
            texts = (f"judged nowhere: {', '.join(nowhere)}", f"judged twice: {', '.join(twice)}")
            text = "; ".join(text for text, ids in zip(texts, (nowhere, twice), strict=True) if ids)
            raise ClaimError(f"{self.chapter}: {text}: judge each claim once, or leave it with a reason")

    def table(self) -> pd.DataFrame:
        """A row a claim: what it says (`claims.row_of`), value, low, high (95 %), half_width, p, p_holm, seeds, clips,
        what each has of the error's variance, verdict, reason, chapter; numbers in the claim's unit. A claim without a
        measurement has NaN, the verdict – and a reason.
        """
        p = [(claim, value) for claim, value in self._elsewhere.values()]
        p += [(claim, one.p) for claim in self.judged if not isinstance(one := self._outcome(claim), str)]
        adjusted = adjusted_by_family(p)
        rows = [self._row(claim, adjusted.get(claim.id)) for claim in self.claims.values()]
        return pd.DataFrame(rows, columns=COLUMNS)

    def _outcome(self, claim: Claim) -> inference.Difference | str:
        """The last that was found, or why nothing was."""
        nothing = UNMEASURED if gaps.found() else "not judged yet"
        return (self._found[claim.id] or [nothing])[-1] if claim.judged else claim.reason["why"]

    def _row(self, claim: Claim, p_holm: float | None) -> dict[str, Any]:
        row, outcome = row_of(claim) | {"chapter": self.chapter}, self._outcome(claim)
        if isinstance(outcome, str):
            return row | {"verdict": LEFT, "reason": outcome}
        row |= {name: getattr(outcome, name) * claim.scale for name in ("value", "low", "high", "half_width")}
        row |= {"p": outcome.p, "p_holm": p_holm, "seeds": outcome.seeds, "clips": outcome.clips, "reason": ""}
        row |= {f"{name}_share": outcome.variance.shares[name] for name in ("seed", "clip")}
        wanted: Any = claim.direction.replace("exists", "higher")
        if claim.direction != "equal" and agrees(row["paper_value"], claim):
            wanted = row["paper_value"] / claim.scale
        margin = claim.least / claim.scale if claim.least else None
        if claim.withheld:
            return row | {"verdict": LEFT, "reason": claim.withheld}
        is_count = claim.evidence != "runs"
        verdict = inference.verdict(replace(outcome, p_holm=p_holm), wanted, margin=margin, exact=is_count)
        has_to = claim.evidence == "identity" and verdict in (inference.HOLDS, inference.SMALLER)
        return row | {"verdict": CANNOT_FAIL if has_to else verdict}


def outcome_of(measure: Measure, scores: Experiments) -> inference.Difference | str:
    """What a measure finds, or why that cannot be; scores: with all that it needs."""
    if absent := [name for name in measure.needs if not scores[name]]:
        return f"{', '.join(absent)} is long and was not computed for these parameters and data"
    try:
        return measure.of(scores)
    except ExperimentError as error:
        return f"not in this profile's experiment: {error}"


def adjusted_by_family(p: Iterable[tuple[Claim, float]]) -> dict[str, float]:
    """p values by claim, adjusted by Holm within each family, id → p; of those that a p decides."""
    families: dict[tuple[str, str], dict[str, float]] = {}
    for claim, value in p:
        if claim.evidence == "runs" and claim.direction != "equal" and not claim.withheld:
            families.setdefault(claim.within, {})[claim.id] = value
    return {
        id: float(value)
        for family in families.values()
        for id, value in zip(family, inference.adjusted(list(family.values())), strict=True)
    }


def published_claims() -> pd.DataFrame:
    """What the book's published executions say of all claims, with columns id and p; empty where there are none."""
    path = workplace() / "executed" / "quick" / "claims.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame({"id": [], "p": []})


def falls_short(row: Mapping[str, Any]) -> bool:
    """Whether a claim cannot be told, yet its interval, not adjusted, ends before a paper's number that is for it."""
    side = SIDES[row["direction"]]
    reached = max(0, side * row["low"], side * row["high"])
    return row["verdict"] == inference.CANNOT_TELL and reached < side * row["paper_value"]


def unit_of(row: Mapping[str, Any]) -> str:
    """What stands after a claim's number: a space and its unit; nothing after a ratio, or where there is none."""
    return "" if row["unit"] in ("", "ratio") or pd.isna(row["unit"]) else f" {row['unit']}"


def sentence(row: Mapping[str, Any]) -> str:
    """A row of `Ledger.table` in words: "**holds**: +3.2 ± 1.1 points (paper +2.7)"."""
    start = f"**{WORDS[row['verdict']]}**" + (f", yet {SHORT}" if falls_short(row) else "")
    if row["verdict"] == LEFT:
        return f"{start}: {row['reason']}"
    digits = form(row["low"], row["high"])
    paper = f" (paper {row['paper_value']:+{digits}})" if np.isfinite(row["paper_value"]) else ""
    return f"{start}: {row['value']:+{digits}} ± {row['half_width']:{digits}}{unit_of(row)}{paper}".replace("-", "−")

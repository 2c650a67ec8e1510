"""Does a sentence term pay? A rule from what is known before training, tested on conditions that it has not seen.

A condition is a world with a text encoder; it is held out whole, with all seeds and both base systems, so that the test
is about new conditions. The test: rules are fitted on random halves of the conditions, and their squared error on the
other halves is compared with that of the mean gain of the fitted half. Whether that is luck is asked of permutations,
in which the conditions' gains are dealt out anew and everything is done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pullpush.metrics.inference import CANNOT_TELL, Array
from pullpush.show.layout import signed
from pullpush.studies.language_encoder.conditions import FACTS
from pullpush.studies.language_encoder.rules import FAMILIES, Rows, constant, fitted, halves, permuted

FEWEST = 6  # conditions: with fewer, half of them are no sample


@dataclass(frozen=True)
class Outcome:
    """How a rule did on conditions that it had not seen.

    skill: 1 − its squared error over that of the mean gain of what it was fitted on; p: share of permutations with as
    much, p_holm: adjusted for the rules that were tried; alone, p_alone: the same with one condition left out at a
    time; signs: share of rows whose sign it had right, yes and no: of always expecting a gain or a loss; slope, bias:
    calibration, measured on predicted gain (1 and 0 are perfect; NaN where one gain was predicted for all).
    """

    rule: str
    skill: float
    p: float
    p_holm: float
    alone: float
    p_alone: float
    signs: float
    yes: float
    no: float
    slope: float
    bias: float

    @property
    def verdict(self) -> str:
        """ "predicts", or "cannot tell" where the test does not separate the rule from a constant gain."""
        return "predicts" if self.skill > 0 and self.p_holm < 0.05 else CANNOT_TELL


@dataclass(frozen=True)
class Decision:
    """What was learnt about when the term pays; empty where there were too few conditions.

    outcomes: of each rule. table: rule, condition, baseline, predicted, value, low, high, held out: predictions of
    rules fitted on all conditions, and the mean of those that had not seen the condition. weights: fact, points a
    standard deviation of it in the line fitted on all. threshold: fact and number of the split fitted on all, and the
    mean gains below and above; None where no split is better than the mean. reliable: share of the gains' variance
    that is not noise of seeds and clips, the most that any rule could explain.
    """

    outcomes: tuple[Outcome, ...]
    table: pd.DataFrame
    weights: pd.DataFrame
    threshold: tuple[str, float, float, float] | None
    reliable: float
    conditions: int

    def summary(self) -> pd.DataFrame:
        """A row a rule, to print."""
        rows = [
            {
                "rule": one.rule, "error less than of the mean": f"{one.skill:.0%}", "p (Holm)": f"{one.p_holm:.3f}",
                "one left out": f"{one.alone:.0%} (p = {one.p_alone:.3f})", "signs right": f"{one.signs:.0%}",
                "always yes": f"{one.yes:.0%}", "always no": f"{one.no:.0%}",
                "slope": "–" if np.isnan(one.slope) else f"{one.slope:.2f}", "bias (points)": f"{100 * one.bias:+.2f}",
                "verdict": one.verdict,
            }
            for one in self.outcomes
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def words(self, term: str = "SimCSE") -> str:
        """The rule to remember and whether it held, from the numbers."""
        if not self.outcomes:
            return f"**{CANNOT_TELL}**: {self.conditions} conditions are too few to hold half of them out."
        said = [self._remembered(term)]
        for one in self.outcomes:
            error = f"its squared error was {1 - one.skill:.0%} of that of one gain for all (p = {one.p_holm:.3f})"
            signs = f"it had {one.signs:.0%} of the signs right, always yes {one.yes:.0%}, always no {one.no:.0%}"
            said.append(f"The {one.rule} on conditions it had not seen: **{one.verdict}**; {error}, and {signs}.")
        said.append(f"Of the variance of the gains, {self.reliable:.0%} is no noise of seeds and clips.")
        return " ".join(said)

    def _remembered(self, term: str) -> str:
        if self.threshold is None:
            return f"No single fact splits these {self.conditions} conditions better than the mean gain of {term} does."
        fact, number, below, above = self.threshold
        name, form = FACTS.get(fact, (fact, ".3g"))
        below, above = (signed(100 * value, "+.1f") for value in (below, above))
        return (
            f"Fitted on all {self.conditions} conditions, {term} brings {above} points where {name} is at least "
            f"{signed(number, form)}, and {below} below."
        )


def decide(
    table: pd.DataFrame, facts: Sequence[str], *, splits: int = 50, permutations: int = 1000, seed: int = 0
) -> Decision:
    """Fit and test both rules of `rules.FAMILIES`.

    Args:
        table: see `conditions.conditions`; every condition with the same baselines.
        facts: columns that the rules may use.
        splits: random halves, each of which is fitted on and then tested on.
        permutations: with which p is computed.
        seed: of both.

    Raises:
        ValueError: conditions with different numbers of rows.
    """
    groups = table["condition"].factorize()[0]
    count = len(set(groups))
    if count < FEWEST:
        return Decision((), pd.DataFrame(), pd.DataFrame(columns=["fact", "points"]), None, float("nan"), count)
    x = table[list(facts)].to_numpy(float)
    drawn = np.random.default_rng(seed)
    parts = list(halves(groups, splits, drawn))
    y = permuted(table["value"].to_numpy(float), groups, permutations, drawn)
    singles = [groups != group for group in range(count)]
    found = {name: (_tested(name, x, groups, y, parts), _tested(name, x, groups, y, singles)[0]) for name in FAMILIES}
    skills = {name: half[0] for name, (half, _) in found.items()}
    p = {name: _share(skill) for name, skill in skills.items()}
    outcomes, rows = [], []
    whole = np.ones(len(y), bool)
    for name, ((skill, predicted, signs), alone) in found.items():
        again = fitted(FAMILIES[name], x, groups, whole, y[:, :1])
        for held_out, values in ((False, again.predicted[:, 0]), (True, predicted)):
            rows.append(table.assign(rule=name, predicted=values, **{"held out": held_out}))
        outcomes.append(
            Outcome(
                name,
                float(skill[0]),
                p[name],
                _holm(p, name),
                float(alone[0]),
                _share(alone),
                signs,
                float((y[:, 0] > 0).mean()),
                float((y[:, 0] < 0).mean()),
                *_calibration(predicted, y[:, 0]),
            )
        )
    noise = float((table["error"] ** 2).mean() / y[:, 0].var(ddof=1)) if y[:, 0].var() > 0 else 1.0
    columns = ["rule", "condition", "baseline", "predicted", "value", "low", "high", "held out"]
    shown = pd.concat(rows, ignore_index=True)[columns]
    return Decision(
        tuple(outcomes), shown, _weights(x, groups, y[:, :1], facts), _threshold(x, groups, y[:, :1], facts),
        max(0.0, 1 - noise), count,
    )  # fmt: skip


def _tested(name: str, x: Array, groups: Array, y: Array, parts: Sequence[Rows]) -> tuple[Array, Array, float]:
    """Of a rule fitted on each of the parts: its skill on the rest, `(B,)`; the mean prediction of each row when held
    out, `(n,)`, and the share of right signs among those, of the gains as they are.
    """
    error, plain = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    total, times, right = np.zeros(len(y)), np.zeros(len(y)), 0
    for fit in parts:
        rest = ~fit
        predicted = fitted(FAMILIES[name], x, groups, fit, y).predicted[rest]
        error += ((y[rest] - predicted) ** 2).sum(axis=0)
        plain += ((y[rest] - fitted(constant, x, groups, fit, y).predicted[rest]) ** 2).sum(axis=0)
        total[rest] += predicted[:, 0]
        times[rest] += 1
        right += int((np.sign(predicted[:, 0]) == np.sign(y[rest, 0])).sum())
    skill = 1 - error / np.where(plain > 0, plain, 1)
    return skill, total / np.maximum(times, 1), right / times.sum()


def _share(skill: Array) -> float:
    """How often permutations, the gains as they are among them, have at least the skill of the first."""
    return float((skill >= skill[0] - 1e-12).mean())


def _holm(p: Mapping[str, float], name: str) -> float:
    """Adjusted by Holm among the rules."""
    ordered, most = sorted(p, key=lambda rule: p[rule]), 0.0
    for place, rule in enumerate(ordered):
        most = max(most, min(1.0, p[rule] * (len(ordered) - place)))
        if rule == name:
            return most
    raise KeyError(name)


def _calibration(predicted: Array, measured: Array) -> tuple[float, float]:
    """Slope of what was measured on what was predicted, and how much more was measured on average."""
    away = predicted - predicted.mean()
    slope = float(away @ measured / (away @ away)) if away @ away > 1e-16 else float("nan")
    return slope, float((measured - predicted).mean())


def _weights(x: Array, groups: Array, y: Array, facts: Sequence[str]) -> pd.DataFrame:
    """What the line fitted on all gives each fact: points a standard deviation; 0 where it is the constant."""
    taken = fitted(FAMILIES["line"], x, groups, np.ones(len(y), bool), y).candidate
    design = taken.design
    slopes = np.linalg.solve(design.T @ design + np.diag(taken.penalty), design.T @ y)[1:, 0]
    return pd.DataFrame({"fact": list(facts), "points": 100 * (slopes if len(slopes) else np.zeros(len(facts)))})


def _threshold(x: Array, groups: Array, y: Array, facts: Sequence[str]) -> tuple[str, float, float, float] | None:
    taken = fitted(FAMILIES["split"], x, groups, np.ones(len(y), bool), y).candidate
    if taken.split is None:
        return None
    number, threshold = taken.split
    above = x[:, number] >= threshold
    return facts[number], threshold, float(y[~above].mean()), float(y[above].mean())

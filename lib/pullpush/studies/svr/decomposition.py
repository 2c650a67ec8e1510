"""What taking the radius apart found: effects of the 2³ design, the scaled push, the race."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from pullpush.lab import common
from pullpush.lab.comparisons import differences, gains
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import Measure, judge_measures
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference
from pullpush.studies.svr import comparisons, histories
from pullpush.studies.svr.mechanism import LETTERS, SCALED, TWICE, factorial
from pullpush.studies.svr.protocols import TITLES

NAMES = {"P": "probabilities", "J": "Jacobian", "A": "partner"}
DESIGN = tuple(factorial())  # its eight systems; the first is InfoNCE twice


def cell(letters: Iterable[str]) -> str:
    """The system in which these effects are on: `cell("PA")` is "SVR:PA", `cell("")` "twice"."""
    on = [letter for letter in LETTERS.values() if letter in set(letters)]
    return f"SVR:{''.join(on)}" if on else TWICE


def protocols(scores: Scores) -> list[str]:
    """The protocols of an experiment, in their order."""
    return list(dict.fromkeys(trial.where["protocol"] for trial in scores.experiment.trials))


def systems(scores: Scores, protocol: str) -> list[str]:
    """The systems that were trained in a protocol."""
    return [trial.system for trial in scores.experiment.trials if trial.where["protocol"] == protocol]


def main_effects(scores: Scores, metric: str = "R@1") -> pd.DataFrame:
    """What each effect of the radius adds, by protocol: the mean of the four systems in which it is on less that of the
    four in which it is off. Where not all eight were trained, what it adds alone to InfoNCE twice.

    Returns:
        Columns protocol, effect, kind ("main" or "alone"), and those of `lab.comparisons.GAIN`; p by Holm within all.
    """
    found = []
    for protocol in protocols(scores):
        kind = "main" if _is_whole(scores, protocol) else "alone"
        for letter in LETTERS.values():
            head = {"protocol": protocol, "effect": NAMES[letter], "kind": kind}
            found.append((head, effect(scores, letter, protocol, metric)))
    return differences(found)


def effect(scores: Scores, letter: str, protocol: str, metric: str = "R@1") -> Difference:
    """What one effect of the radius, by its letter, adds in a protocol; see `main_effects`.

    Raises:
        ExperimentError: its system or InfoNCE twice was not trained.
    """
    where = {"protocol": protocol}
    if not _is_whole(scores, protocol):
        return scores.contrast(cell(letter), TWICE, metric, where)
    halves = [[name for name in DESIGN if (letter in name.removeprefix("SVR:")) is on] for on in (True, False)]
    ours, theirs = (np.mean([scores.values(name, metric, where) for name in half], axis=0) for half in halves)
    return difference(ours, theirs)


def _is_whole(scores: Scores, protocol: str) -> bool:
    return {*DESIGN} <= {*systems(scores, protocol)}


def over(scores: Scores, baseline: str, metric: str = "R@1") -> pd.DataFrame:
    """What every system has over one, by protocol, p by Holm within it: columns protocol, system, and those of GAIN."""
    tables = []
    for protocol in protocols(scores):
        pairs = [(system, baseline) for system in systems(scores, protocol) if system != baseline]
        tables.append(gains(scores, pairs, [metric], [{"protocol": protocol}]))
    return pd.concat(tables, ignore_index=True).drop(columns=["baseline", "metric"])


def scaled(scores: Scores, metric: str = "R@1") -> pd.DataFrame:
    """What a scaled push has over InfoNCE: the columns of `over`, with part ("perpendicular" or "sideways") and factor;
    InfoNCE itself has factor 1 and difference 0.
    """
    table = over(scores, "infonce", metric)
    table = table[table["system"].isin(SCALED)].copy()
    options = [SCALED[name][1] for name in table["system"]]
    table["factor"] = [float(option["perpendicular"]) for option in options]
    table["part"] = [option.get("part", "perpendicular") for option in options]
    ones = table.drop_duplicates(["protocol", "part"]).assign(
        factor=1.0, system="infonce", value=0.0, low=0.0, high=0.0
    )
    return pd.concat([table, ones], ignore_index=True).sort_values(["protocol", "part", "factor"], ignore_index=True)


def table_over(scores: Scores, baseline: str, names: Sequence[str], metric: str = "R@1") -> pd.DataFrame:
    """`over` for some systems with the columns that `show.tables.gains` takes; the system's name says its protocol."""
    table = over(scores, baseline, metric)
    table = table[table["system"].isin(names)].assign(baseline=baseline, metric=metric)
    return table.assign(system=table["protocol"].map(TITLES) + ": " + table["system"]).reset_index(drop=True)


def effects_table(by_point: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`main_effects` at several points (name → table) as text: point, protocol, effect, kind, difference with its
    interval in points, p (Holm within a point), seeds × items.
    """
    table = pd.concat(by_point, names=["point"]).reset_index("point").reset_index(drop=True)
    table["protocol"] = table["protocol"].map(TITLES)
    return comparisons.readable(comparisons.in_points(table))


def standings(scores: Scores, names: Sequence[str], metric: str = "R@1") -> pd.DataFrame:
    """Some systems by protocol, in %: seeds, mean ± standard deviation, and what validation still gained at the end."""
    table = scores.table[scores.table["system"].isin(names)].rename(columns={"unconverged": "still gained"})
    by_protocol = table.groupby(table["protocol"].map(TITLES), sort=False)
    columns = [metric, "still gained"]
    parts = {name: common.mean_and_spread(rows, "system", columns, percent=True) for name, rows in by_protocol}
    return pd.concat(parts, names=["protocol"]).reset_index("protocol")


def race(scores: Scores, names: Sequence[str]) -> pd.DataFrame:
    """How soon systems are where InfoNCE ends, by protocol: `histories.epochs_to_target` and the epochs of a run."""
    parts = []
    for protocol in protocols(scores):
        rows = scores.history[scores.history["protocol"] == protocol]
        part = histories.epochs_to_target(rows, names, baseline="infonce")
        part.insert(0, "protocol", TITLES[protocol])
        part.insert(4, "of", rows["epoch"].max())
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def again(first: Scores, second: Scores, baseline: str = "infonce", metric: str = "R@1") -> pd.DataFrame:
    """What runs that two experiments declare alike, trained by both, found there and here, in points.

    Returns:
        Columns protocol, system, seeds (that both have), first, second (means), "one run" (the largest difference of
        two runs of one seed), and "over <baseline>, first" and "…, second", ± half width, over those seeds alone.

    Raises:
        ExperimentError: no run is declared by both, or one of them lacks the baseline.
    """
    declared = [replace(trial, seeds=()) for trial in first.experiment.trials]
    rows = []
    for trial in second.experiment.trials:
        if replace(trial, seeds=()) not in declared:
            continue
        there, here = (scores.seeds(trial.system, trial.where) for scores in (first, second))
        seeds = [seed for seed in here if seed in there]
        if not seeds:
            continue
        sides = [scores.values(trial.system, metric, trial.where, seeds=seeds) for scores in (first, second)]
        runs = [100 * side.mean(axis=1) for side in sides]
        row = {"protocol": TITLES[trial.where["protocol"]], "system": trial.system, "seeds": len(seeds)}
        row |= {"first": runs[0].mean(), "second": runs[1].mean(), "one run": np.abs(runs[0] - runs[1]).max()}
        for name, scores, side in zip(("first", "second"), (first, second), sides, strict=True):
            gain = difference(side, scores.values(baseline, metric, trial.where, seeds=seeds))
            text = "" if trial.system == baseline else f"{100 * gain.value:+.1f} ± {100 * gain.half_width:.1f}"
            row[f"over {baseline}, {name}"] = text.replace("-", "−")
        rows.append(row)
    if not rows:
        raise ExperimentError(f"{first.experiment.name} and {second.experiment.name} declare no run alike")
    return pd.DataFrame(rows)


JACOBIAN = Measure(["effects"], lambda scores: effect(scores["effects"], "J", "tuned/yamnet"))


def judge(ledger: Ledger, scores: Scores) -> None:
    """Judge the claim about the mechanism that no single contrast is: what the Jacobian adds in one protocol."""
    judge_measures(ledger, {"jacobian-effect": JACOBIAN}, {"effects": scores})

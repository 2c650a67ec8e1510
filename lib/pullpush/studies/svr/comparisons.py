"""Scores of the chapter's experiments as tidy tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import pandas as pd

from pullpush.errors import PullPushError
from pullpush.lab import common, comparisons
from pullpush.lab.material import Labelled
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference
from pullpush.show.palette import method_name
from pullpush.training.evaluate import zero_shot
from pullpush.training.loop import Result

NAMES = {
    "twice": "InfoNCE twice (R = 0)",
    "siglip+infonce": "SigLIP + InfoNCE (R = 0)",
    "reweight": "Simple Reweight, gradient",
    "reweight-softmax": "Simple Reweight, softmax",
}
EXTREMES = ["difference", "low", "high", "half width", "p (Holm)", "seeds", "items"]


def named(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table with the printed names of its systems, in the column "system" unless others are named."""
    names = {column: table[column].map(lambda name: NAMES.get(name) or method_name(name)) for column in columns}
    return table.assign(**names) if columns else named(table, "system")


def compared(gains: pd.DataFrame) -> pd.DataFrame:
    """`Scores.gains` for a figure: the column system says "… over …"."""
    both = named(gains, "system", "baseline")
    return gains.assign(system=both["system"] + " over " + both["baseline"])


def standings(
    scores: Scores, metrics: Sequence[str], *, by: Sequence[str] = ("system",), where: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Who stands where, in %: mean ± standard deviation over seeds, and what validation R@1 still gained at the end.

    Args:
        metrics: columns of `scores.table`.
        by: columns that name a row together, such as ("route", "system").
        where: column → value of the rows that are meant.

    Returns:
        Columns system (the row's name), seeds, test items, the metrics, and "still gained (%)": in the last quarter of
        training, so that runs that were stopped early show it.
    """
    table = scores.table
    for column, value in (where or {}).items():
        table = table[table[column] == value]
    names = named(table)[list(by)].astype(str).agg(", ".join, axis=1)
    table = table.assign(system=names).rename(columns={"unconverged": "still gained"})
    standing = common.mean_and_spread(table, "system", [*metrics, "still gained"], percent=True)
    standing.insert(2, "test items", max(len(values[metrics[0]]) for values in scores.clips.values()))
    return standing


def differences(found: Mapping[tuple, Difference], heads: Sequence[str], *, scale: float = 100) -> pd.DataFrame:
    """Differences as a table: the `heads`, difference, low, high, half width, p (Holm within it), seeds, items.

    scale: of fractions, 100 gives points.
    """
    table = comparisons.differences((dict(zip(heads, key, strict=True)), one) for key, one in found.items())
    return in_points(table, scale=scale)


def in_points(table: pd.DataFrame, *, scale: float = 100) -> pd.DataFrame:
    """`lab.comparisons.differences` in points, with the names that this chapter's tables have."""
    table = table.rename(columns={"value": "difference", "p": "p (Holm)", "clips": "items"})
    return table.assign(**{name: scale * table[name] for name in EXTREMES[:4]})


def readable(table: pd.DataFrame, *, digits: int = 1) -> pd.DataFrame:
    """What `differences` gives, as text: "+1.2 ± 0.8 [0.4, 2.0]", p, and how many seeds × test items."""
    form = f"z.{digits}f"
    texts = [
        f"{row['difference']:+{form}} ± {row['half width']:{form}} [{row['low']:{form}}, {row['high']:{form}}]"
        for row in table.to_dict("records")
    ]
    words = table.drop(columns=EXTREMES)
    words["difference [95 %]"] = [text.replace("-", "−") for text in texts]
    words["p (Holm)"] = table["p (Holm)"].map("{:.3f}".format)
    return words.assign(**{"seeds × items": table["seeds"].astype(str) + " × " + table["items"].astype(str)})


def at_every_point(scores: Scores, system: str, baseline: str, metric: str = "R@1") -> dict[tuple, Difference]:
    """What a system has over a baseline at each point at which both were trained, by the values that make the point."""
    points = [trial.where for trial in scores.experiment.trials if trial.system == baseline]
    wheres = [trial.where for trial in scores.experiment.trials if trial.system == system and trial.where in points]
    return {tuple(where.values()): scores.contrast(system, baseline, metric, where) for where in wheres}


def over_start(scores: Scores, system: str, name: str, start: float, metric: str = "R@1") -> dict[tuple, Difference]:
    """What a system has at each value of what varies over itself at `start`, by ("R = 0.3", "R = 0.0")."""
    found = {}
    values = dict.fromkeys(trial.where[name] for trial in scores.experiment.trials if trial.system == system)
    for value in values:
        if value != start:
            words = (f"{name} = {value}".replace("-", "−"), f"{name} = {start}")
            found[words] = scores.contrast(system, metric=metric, where={name: value}, baseline_where={name: start})
    return found


def routes(names: Sequence[str]) -> list[tuple[str, str]]:
    """All ways from one dataset that is trained on to another that is tested on.

    Raises:
        PullPushError: there is one dataset.

    >>> routes(["A", "B"])
    [('A', 'B'), ('B', 'A')]
    """
    if len(names) < 2:
        raise PullPushError(
            f"there is one dataset here, {' '.join(names)}: to train on one and test on another name a second as "
            "`other` in a profile"
        )
    return list(permutations(names, 2))


def positive_cosines(scores: Scores, systems: Iterable[str]) -> pd.DataFrame:
    """Cosine of every test clip with its first caption, seed by seed: columns system, seed, cosine."""
    return pd.concat(
        pd.DataFrame({"system": system, "seed": seed, "cosine": scores.clips[system, seed]["positive cosine"]})
        for system in systems
        for seed in scores.seeds(system)
    )


def accuracies(scores: Scores, name: str) -> pd.DataFrame:
    """Zero-shot accuracy where it was scored with the runs, class by class: as `zero_shots` gives it.

    name: of the set.
    """
    classes = len(next(iter(scores.clips.values()))["accuracy"])
    return scores.table[["system", "seed", "accuracy"]].assign(set=name, chance=1 / classes)


def zero_shots(runs: Mapping[tuple[str, int], Result], sounds: Mapping[str, Labelled]) -> pd.DataFrame:
    """Zero-shot accuracy with the paper's English prompt: columns set, system, seed, accuracy, chance.

    Raises:
        PullPushError: there are no labelled sounds.
    """
    if not sounds:
        raise PullPushError(
            "these data have captions and no labels: for zero-shot classification name labelled datasets, such as "
            "esc50, as `zero_shot` in a profile"
        )
    rows = []
    for name, (split, prompts) in sounds.items():
        for (system, seed), run in runs.items():
            table = zero_shot(run.model, split, prompts).set_index("metric")
            rows.append((name, system, seed, table.loc["accuracy", "value"], table.loc["accuracy", "chance"]))
    return pd.DataFrame(rows, columns=["set", "system", "seed", "accuracy", "chance"])


def radius_by_trunk(found: Mapping[str, Scores], system: str) -> pd.DataFrame:
    """A system's radius over training by what the trunk is (name → scores): columns panel ("noise"), curve, seed, step,
    radius; experiments without scores are left out.
    """
    curves = []
    for name, scores in found.items():
        steps = scores.steps[scores.steps["system"] == system]
        curves.append(steps.assign(panel="noise", curve=name))
    return pd.concat(curves)

"""Scores by test, language, prompt and size of the batch, and what systems have over each other (see printed.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS
from pullpush.metrics.inference import Array, difference, holm
from pullpush.studies.glap.experiments import SOUNDS, TOLD
from pullpush.studies.measures import joined

Pair = tuple[str, str]  # a system and its baseline
SPANS = ("value", "low", "high")
LEVELS = ("test", "system", "metric", *SPANS, "chance", "seeds", "clips")
GAINS = ("test", "system", "baseline", "metric", *SPANS, "half width", "p", "seeds", "clips")


def values(scores: Scores, system: str, metric: str, tests: Sequence[str], where: Where | None = None) -> Array:
    """A score by seed and clip over several tests, `(S, N)`, whose mean is the mean of the tests' means.

    Raises:
        ExperimentError: a system, test or metric that is not there.
    """
    return joined([scores.values(system, metric, {**(where or {}), "test": test}) for test in tests])


def over_tests(
    scores: Scores,
    pair: Pair,
    metric: str,
    tests: Sequence[str],
    where: Where | None = None,
    *,
    baseline_where: Where | None = None,
) -> Array:
    """What a system has over a baseline, over several tests, `(S, N)`; baseline_where: what differs in its place."""
    ours, theirs = pair
    return values(scores, ours, metric, tests, where) - values(
        scores, theirs, metric, tests, {**(where or {}), **(baseline_where or {})}
    )


def by_chance(metric: str, found: Array) -> float:
    """What a random order scores of values by seed and clip (or class), of which one is right; NaN where unknown.

    >>> import numpy as np
    >>> round(by_chance("T2A R@1", np.zeros((3, 50))), 3), by_chance("accuracy", np.zeros((3, 4)))
    (0.02, 0.25)
    """
    if metric == "R@1":  # the mean of both directions, one caption a clip
        return 1 / found.shape[1]
    known = [score for card in METRICS.values() for score in card.scores if score.name == metric and score.chance]
    return float(known[0].chance(1, found.shape[1])) if known and known[0].chance else float("nan")


def tests_of(scores: Scores) -> list[str]:
    """The tests of an experiment, in its order."""
    return list(dict.fromkeys(trial.where["test"] for trial in scores.experiment.trials if "test" in trial.where))


def systems_of(scores: Scores, where: Where | None = None) -> list[str]:
    """The systems that an experiment has at a point."""
    wanted = (where or {}).items() - {("language", (where or {}).get("language"))}
    found = [trial for trial in scores.experiment.trials if wanted <= trial.where.items()]
    return list(dict.fromkeys(trial.system for trial in found))


def levels(
    scores: Scores, metrics: Sequence[str], tests: Sequence[str] = (), where: Where | None = None
) -> pd.DataFrame:
    """Where every system stands on each test, with 95 % intervals over seeds and clips; columns LEVELS, fractions.

    tests: default: all of the experiment. Empty of scores that are not there.
    """
    rows = []
    for test in (tests or tests_of(scores)) if scores else ():
        at = {**(where or {}), "test": test}
        for system in systems_of(scores, at):
            for metric in metrics:
                found = scores.values(system, metric, at)
                rows.append(_level((test, system, metric), found, by_chance(metric, found)))
    return pd.DataFrame(rows, columns=list(LEVELS))


def _level(head: tuple[str, ...], found: Array, chance: float) -> tuple[Any, ...]:
    one = difference(found)
    return (*head, one.value, one.low, one.high, chance, one.seeds, one.clips)


def gains(
    scores: Scores,
    pairs: Iterable[Pair],
    metrics: Sequence[str],
    tests: Sequence[str] = (),
    where: Where | None = None,
    *,
    pooled: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """What systems have over baselines on each test; columns GAINS, fractions, p by Holm within the table.

    Args:
        pooled: name → tests, for further rows of the mean over several tests.
    """
    groups = {test: [test] for test in (tests or tests_of(scores))} | dict(pooled or {}) if scores else {}
    heads, found = [], []
    for (system, baseline), (name, several), metric in (
        (pair, group, metric) for pair in pairs for group in groups.items() for metric in metrics
    ):
        try:
            found.append(difference(over_tests(scores, (system, baseline), metric, several, where)))
        except ExperimentError:  # a pair that was not trained at this point
            continue
        heads.append((name, system, baseline, metric))
    rows = [
        (*head, one.value, one.low, one.high, one.half_width, one.p_holm, one.seeds, one.clips)
        for head, one in zip(heads, holm(found), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(GAINS))


def over_points(scores: Scores, metric: str, column: str) -> pd.DataFrame:
    """`levels` at every value of what varies, which stands in a column of its name."""
    values = dict.fromkeys(trial.where[column] for trial in scores.experiment.trials)
    tables = [levels(scores, [metric], where={column: value}).assign(**{column: value}) for value in values]
    return pd.concat(tables, ignore_index=True)


def by_language(sounds: Scores, music: Scores, languages: Sequence[str]) -> pd.DataFrame:
    """Accuracy of naming in every language, each test by the prompt of its domain: columns LEVELS and language.

    sounds, music: of the experiments that ask by the prompt for sounds and by that for music.
    """
    parts = []
    for scores, tests in ((sounds, SOUNDS), (music, ("music",))):
        chosen = [test for test in tests if scores and test in tests_of(scores)]
        for each in languages:
            found = _known(scores, f"accuracy {each}", chosen)
            parts.append(found[found["system"].isin(TOLD)].assign(language=each))
    return pd.concat(parts, ignore_index=True)


def by_prompt(named: Mapping[str, Scores], tests: Sequence[str], system: str = "GLAP") -> pd.DataFrame:
    """Accuracy of one system by each prompt of Table 3, in English: columns LEVELS, the prompt in place of the system.

    named: "named-sound" … → scores.
    """
    titles = {"sound": "sound prompt", "music": "music prompt", "speech": "bare label"}
    parts = []
    for kind, title in titles.items():
        scores = named[f"named-{kind}"]
        found = _known(scores, "accuracy eng", [test for test in tests if scores and test in tests_of(scores)])
        parts.append(found[found["system"] == system].assign(system=title))
    return pd.concat(parts, ignore_index=True)


def _known(scores: Scores, metric: str, tests: Sequence[str]) -> pd.DataFrame:
    """`levels` of a score on those tests that have it: labels are not there in every language."""
    cells = scores.clips.items() if scores else ()
    has = [test for test in tests if any(f"test={test}" in name and metric in found for (name, _), found in cells)]
    return levels(scores, [metric], has) if has else pd.DataFrame(columns=list(LEVELS))


def points(gained: pd.DataFrame) -> pd.DataFrame:
    """`gains` as a page shows them: a row a comparison, a column a test, in points with the half width."""
    cells = gained.assign(
        cell=[f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f}" for row in gained.to_dict("records")]
    )
    keys = [name for name in gained if name not in GAINS or name in ("system", "baseline", "metric")]
    wide = cells.pivot_table(index=keys, columns="test", values="cell", aggfunc="first", sort=False)
    return wide.reset_index().rename_axis(columns=None).rename(columns={"baseline": "over"})


def wide(table: pd.DataFrame, metric: str = "", *, rows: str = "system", columns: str = "test") -> pd.DataFrame:
    """`levels` as a page shows it, in %: a row a system, a column a test."""
    chosen = table[table["metric"] == metric] if metric else table
    cells = chosen.assign(cell=[f"{100 * value:.1f}" for value in chosen["value"]])
    found = cells.pivot_table(index=rows, columns=columns, values="cell", aggfunc="first", sort=False)
    return found.reset_index().rename_axis(columns=None)

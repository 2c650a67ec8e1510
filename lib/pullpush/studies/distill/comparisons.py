"""Tables of the lab of chapter 6: levels and gains by what hears, and the paper's numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import difference, holm
from pullpush.studies.distill.stages import STANDS_FOR

PAPER = "distill_cluster"
Pair = tuple[str, str]  # a system and its baseline
MAIN_SCORE = "mAP@16 multiple"
TABLE_2 = ("mAP@10 multiple", "mAP@16 multiple", "mAP@10 single", "R@1 single", "R@5 single", "R@10 single")
NUMBERED = ("1", "2", "3", "4", "5")  # systems of Table 1
ENSEMBLES = ("E1", "E2", "E3", "E4")
LEVELS = ("system", "metric", "value", "low", "high", "seeds", "clips")
GAINS = ("system", "baseline", "metric", "value", "low", "high", "half width", "p", "seeds", "clips")


def levels(scores: Scores, metrics: Sequence[str] = (MAIN_SCORE,)) -> pd.DataFrame:
    """Where every trial stands: what varies, and the columns LEVELS, fractions with 95 % intervals over seeds and
    clips. Empty of scores that are not there.
    """
    rows = []
    for trial in scores.experiment.trials if scores else ():
        for metric in metrics:
            found = difference(scores.values(trial.system, metric, trial.where))
            numbers = (found.value, found.low, found.high, found.seeds, found.clips)
            rows.append({**trial.where, **dict(zip(LEVELS, (trial.system, metric, *numbers), strict=True))})
    return pd.DataFrame(rows, columns=None if rows else list(LEVELS))


def gains(
    scores: Scores,
    pairs: Iterable[Pair],
    metrics: Sequence[str] = (MAIN_SCORE,),
    wheres: Iterable[Where] = ({},),
) -> pd.DataFrame:
    """What systems have over baselines at each point: what varies, and the columns GAINS; p by Holm over all rows."""
    heads, found = [], []
    plans = [(pair, where, metric) for pair in pairs for where in wheres for metric in metrics] if scores else []
    for (system, baseline), where, metric in plans:
        try:
            found.append(scores.contrast(system, baseline, metric, where))
        except ExperimentError:  # a pair that was not trained at this point
            continue
        heads.append({**where, "system": system, "baseline": baseline, "metric": metric})
    rows = [
        {**head, "value": one.value, "low": one.low, "high": one.high, "half width": one.half_width}
        | {"p": one.p_holm, "seeds": one.seeds, "clips": one.clips}
        for head, one in zip(heads, holm(found), strict=True)
    ]
    return pd.DataFrame(rows, columns=None if rows else list(GAINS))


def printed(system: str, ears: str, metric: str) -> float:
    """What Table 2 prints, in %: of a system of Table 1 by ears of ours, or of an ensemble; NaN where it prints none.

    >>> printed("2", "yamnet", "mAP@16 multiple"), printed("E1", "", "R@1 single")
    (46.62, 28.33)
    """
    name, annotation = metric.split(" ")
    label = system if system in ENSEMBLES else f"SID {system} {STANDS_FOR.get(ears, '')}"
    table = paper_table(PAPER, 2)
    chosen = (table["system"] == label) & (table["metric"] == name) & _noted(table, f"annotation={annotation}")
    return float(table.loc[chosen, "value"].astype(float).mean()) if chosen.any() else float("nan")


def _noted(table: pd.DataFrame, text: str) -> pd.Series:
    return (";" + table["note"].astype(str) + ";").str.contains(f";{text};", regex=False)


def table_2(found: pd.DataFrame) -> pd.DataFrame:
    """Levels as Table 2 prints them, in %: a row a system and ears, ours above the paper's.

    found: columns system, ears, metric, value, low, high; see `levels`.
    """
    rows = []
    for (system, ears), group in found.groupby(["system", "ears"], sort=False):
        rows.append(
            {"system": system, "hears": ears} | dict(zip(group["metric"], map(_percent, group["value"]), strict=True))
        )
        theirs = {metric: printed(system, ears, metric) for metric in group["metric"]}
        if np.isfinite(list(theirs.values())).any():
            shown = {metric: "–" if np.isnan(value) else f"{value:.1f}" for metric, value in theirs.items()}
            rows.append({"system": f"paper: {system}", "hears": STANDS_FOR.get(ears, ""), **shown})
    return pd.DataFrame(rows, columns=["system", "hears", *dict.fromkeys(found["metric"])])


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def points(table: pd.DataFrame, *, across: str = "metric") -> pd.DataFrame:
    """`gains` as a page shows them, in points with the half width; across: what stands in columns."""
    cells = table.assign(
        cell=[f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f}" for row in table.to_dict("records")]
    )
    keys = [name for name in cells if name not in (*GAINS, "cell", across)]
    index = ["system", "baseline", *(["metric"] if across != "metric" else []), *keys]
    wide = cells.pivot_table(index=index, columns=across, values="cell", aggfunc="first", sort=False)
    return wide.reset_index().rename_axis(columns=None).rename(columns={"baseline": "over"})


def chosen_by_validation(scores: Scores, systems: Mapping[str, Any]) -> tuple[str, str]:
    """The best and the worst of several points by validation R@1 (best epoch, mean over seeds); systems: name → trial.

    So that what is compared on the test clips was not picked by them.
    """
    found = {}
    history = scores.history.assign(system=scores.history["system"].astype(str))  # a file gives "2" back as a number
    for name, trial in systems.items():
        runs = [scores.rows(history, trial, seed)["R@1"].max() for seed in scores.seeds(trial.system, trial.where)]
        found[name] = float(np.mean(runs))
    return max(found, key=found.__getitem__), min(found, key=found.__getitem__)


def rankings(scores: Scores, metrics: Sequence[str] = TABLE_2) -> pd.DataFrame:
    """The place of each system and ears by each score, 1 for the best: columns system, ears, and one a score."""
    found = levels(scores, metrics)
    wide = found.pivot_table(index=["system", "ears"], columns="metric", values="value", sort=False)[list(metrics)]
    return wide.rank(ascending=False, method="min").astype(int).reset_index().rename_axis(columns=None)

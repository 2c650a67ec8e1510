"""Tables of the lab of chapter 6: the paper's numbers beside ours, ranks, what validation chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab.comparisons import levels
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.studies.distill.stages import STANDS_FOR

PAPER = "distill_cluster"
MAIN_SCORE = "mAP@16 multiple"
TABLE_2 = ("mAP@10 multiple", "mAP@16 multiple", "mAP@10 single", "R@1 single", "R@5 single", "R@10 single")
NUMBERED = ("1", "2", "3", "4", "5")  # systems of Table 1
ENSEMBLES = ("E1", "E2", "E3", "E4")


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

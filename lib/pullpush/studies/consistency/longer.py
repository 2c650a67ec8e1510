"""Runs of several lengths, compared at equal texts or at equal steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from pullpush.lab.scores import Scores
from pullpush.metrics import Difference
from pullpush.studies.consistency import comparisons
from pullpush.studies.consistency.comparisons import by_run, contrasts

Length = tuple[str, int]  # a system, and how many times longer it trained


def longer_table(scores: Scores, epochs: int) -> pd.DataFrame:
    """Runs of several lengths, a row each: what `by_run` gives, with `texts`, read of each clip, and `label`.

    epochs: of the shortest.
    """
    table = by_run(scores.table)
    a_step = {"ml-clap": 1, "cacl": 2, "kcl": len(scores.experiment.languages)}  # of a clip
    table["texts"] = epochs * table["times"] * table["system"].map(a_step)
    lengths = zip(table["system"], table["times"], strict=True)
    return table.assign(label=[name if times == 1 else f"{name} ×{times}" for name, times in lengths])


def longer_gains(scores: Scores, pairs: Iterable[tuple[Length, Length]], metrics: Sequence[str]) -> pd.DataFrame:
    """What systems of one length of training have over others of another; see `contrasts`."""

    def compared(length: Length, baseline: Length, metric: str) -> tuple[dict[str, Any], Difference]:
        (system, times), (base, base_times) = length, baseline
        gain = scores.contrast(system, base, metric, {"times": times}, baseline_where={"times": base_times})
        return {"system": f"{system} ×{times}", "baseline": f"{base} ×{base_times}", "metric": metric}, gain

    pairs = list(pairs)
    return contrasts(compared(*pair, metric) for metric in metrics for pair in pairs)


def standings(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """`comparisons.standings` of a `longer_table`, with the texts read of a clip and the mean rank variance."""
    means = comparisons.standings(table, "label", metrics)
    by_label = table.groupby("label", sort=False)[["texts", "MRV"]].mean()
    means.insert(2, "texts read of a clip", [f"{count:.0f}" for count in by_label["texts"]])
    return means.assign(MRV=[f"{value:.0f}" for value in by_label["MRV"]])

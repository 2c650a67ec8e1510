"""Drift in its three readings, run by run, and whether less of it goes with better retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from pullpush.lab.experiments import ExperimentError
from pullpush.lab.scores import Scores

DRIFTS: Mapping[str, str] = {
    "gradient_drift_pull": "gradient and pull, as printed",
    "gradient_drift_tangent": "gradient and geodesic direction, on the sphere",
    "update_drift": "realised update and straight way û",
}


def drift_and_recall(scores: Scores, metric: str = "R@1") -> pd.DataFrame:
    """A row a run: protocol, system, seed, the three readings of drift (mean cosines over the second half of training;
    the higher, the less drift), and the metric.

    Raises:
        ExperimentError: the steps were not watched.
    """
    missing = [name for name in DRIFTS if name not in scores.steps]
    if missing:
        raise ExperimentError(f"{scores.experiment.name} was trained without {', '.join(missing)}: give it a watch")
    rows = []
    for trial, seed in scores.experiment.cells:
        steps = scores.rows(scores.steps, trial, seed)
        late = steps[steps["step"] > steps["step"].max() / 2]
        value = scores.clips[str(trial), seed][metric].mean()
        rows.append((trial.where["protocol"], trial.system, seed, *(late[name].mean() for name in DRIFTS), value))
    return pd.DataFrame(rows, columns=["protocol", "system", "seed", *DRIFTS, metric])


def rank_correlations(runs: pd.DataFrame, metric: str = "R@1", *, without: Sequence[str] = ()) -> pd.DataFrame:
    """Spearman's correlation of each reading with the metric, over the means of systems, by protocol: columns protocol,
    reading, correlation, systems.

    without: systems that are left out, such as those that were made to fail.
    """
    means = runs[~runs["system"].isin(without)].groupby(["protocol", "system"], sort=False)
    means = means[[*DRIFTS, metric]].mean().reset_index()
    rows = [
        (protocol, DRIFTS[name], group[name].corr(group[metric], method="spearman"), len(group))
        for protocol, group in means.groupby("protocol", sort=False)
        for name in DRIFTS
    ]
    return pd.DataFrame(rows, columns=["protocol", "reading", "correlation", "systems"])

"""Forces and drift over the steps of training, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from pullpush.lab.ledger import Ledger
from pullpush.show.palette import method_name
from pullpush.studies.means import by_seed

AS_PRINTED = "gradient_drift_pull"  # Figure 1 read literally: the gradient against F_pull


def late(steps: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means of columns over the second half of training: recipe, seed, columns.

    >>> steps = pd.DataFrame({"recipe": "infonce", "seed": 0, "step": [1, 2, 3, 4], "drift": [0.9, 0.7, 0.4, 0.2]})
    >>> late(steps, ["drift"]).round(3).to_dict("records")
    [{'recipe': 'infonce', 'seed': 0, 'drift': 0.3}]
    """
    rows = steps[steps["step"] > steps["step"].max() / 2]
    return rows.groupby(["recipe", "seed"], sort=False)[list(columns)].mean().reset_index()


def penalty_ratios(steps: pd.DataFrame) -> pd.Series:
    """Eq. 12's noise penalty over the size of its ideal term, all of training together, by (recipe, seed)."""
    by_run = steps.assign(ideal=steps["ideal"].abs()).groupby(["recipe", "seed"], sort=False)
    return by_run["noise_penalty"].mean() / by_run["ideal"].mean()


def drift_differences(drift: pd.DataFrame, panels: Mapping[str, str]) -> pd.DataFrame:
    """Cosines of `late` against one another, over seeds: every recipe with the first, and where the embeddings have
    gone with where their gradients point.

    panels: column → name of the reading; the last two are those of the gradient and of the step. Columns: cosine of,
    difference, seeds.
    """
    found = {name: rows.set_index("seed") for name, rows in drift.groupby("recipe", sort=False)}
    first, *others = found
    plans = [
        (f"{title}: {method_name(name)} − {method_name(first)}", found[name][column] - found[first][column])
        for column, title in panels.items()
        for name in others
    ]
    (gradient, _), (step, _) = list(panels.items())[-2:]
    plans += [
        (f"{method_name(name)}: realised update − gradient", rows[step] - rows[gradient])
        for name, rows in found.items()
    ]
    rows = []
    for title, gain in plans:
        shown = f"{by_seed(gain):.3f}" if len(gain) > 1 else f"{gain.mean():+.3f}"  # one seed has no interval
        rows.append({"cosine of": title, "difference": shown, "seeds": len(gain)})
    return pd.DataFrame(rows)


STEP_MEASURES: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "perpendicular-share": lambda steps: late(steps, ["perpendicular_share"])["perpendicular_share"],
    "noise-penalty-ratio": penalty_ratios,
    "drift-infonce": lambda steps: late(steps, [AS_PRINTED])[AS_PRINTED] - 1,
}


def judge_steps(ledger: Ledger, steps: pd.DataFrame) -> None:
    """Judge the claims about InfoNCE's training, seed by seed, or leave them where it was not trained with several."""
    infonce = steps[steps["recipe"] == "infonce"]
    for measure, measured in STEP_MEASURES.items():
        if infonce["seed"].nunique() > 1:
            ledger.judge(measure, by_seed(measured(infonce)))
        else:
            ledger.leave(measure, "InfoNCE was not trained with several seeds for these parameters.")

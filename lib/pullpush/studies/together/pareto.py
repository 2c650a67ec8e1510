"""What is worth its price: the Pareto front of quality against cost, and the rule that picks one recipe from a design.

A design predicts what it did not run: main effects and two-way interactions, fitted by least squares, say what each of
the 2^k combinations would score, and how sure that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pullpush.lab.scores import Scores
from pullpush.studies.together.design import Design, full
from pullpush.studies.together.effects import responses
from pullpush.studies.together.terms import label


@dataclass(frozen=True)
class Surface:
    """A model of a design's runs by main effects and two-way interactions.

    Attributes:
        design: what was run.
        coefficients: `(1 + effects,)`, half of each effect; the first is the mean.
        error: standard deviation of what the model leaves, of one block's run.
        blocks: runs of each combination, such as seeds.
    """

    design: Design
    coefficients: np.ndarray
    error: float
    blocks: int

    def predicted(self) -> pd.DataFrame:
        """A row each of the 2^k combinations: system (its label), terms (how many are high), value, error (of the
        prediction of its mean).
        """
        every, model = full(self.design.factors), self.design.model()
        rows = every.model()
        errors = self.error * np.sqrt(((rows @ np.linalg.inv(model.T @ model)) * rows).sum(axis=1) / self.blocks)
        named = [(label(high), len(high)) for high in every.runs]
        return pd.DataFrame(named, columns=["system", "terms"]).assign(value=rows @ self.coefficients, error=errors)


def fitted(design: Design, values: ArrayLike) -> Surface:
    """A surface through what the runs of a design scored.

    Args:
        values: `(runs, blocks)`, one number a run and seed; a block's own level (its mean over all runs) is taken out.

    Raises:
        ValueError: other shapes, or a design in which two-way interactions are aliased.

    >>> surface = fitted(full("ABC"), np.arange(8.0)[:, None].repeat(2, axis=1))  # A adds 1, B 2, C 4
    >>> surface.predicted()["value"].abs().round(6).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    scores, model = np.asarray(values, dtype=np.float64), design.model()
    if scores.ndim != 2 or len(scores) != len(design):
        raise ValueError(f"values must be (runs, blocks) of {len(design)} runs, got {scores.shape}")
    if np.linalg.matrix_rank(model) < model.shape[1]:
        raise ValueError(f"a design of resolution {design.resolution} cannot tell two-way interactions apart")
    level = scores.mean(axis=0)
    centred = scores - level + level.mean()
    coefficients = np.linalg.lstsq(model, centred.mean(axis=1), rcond=None)[0]
    rest = centred - (model @ coefficients)[:, None]
    df = scores.size - model.shape[1] - (scores.shape[1] - 1)
    return Surface(design, coefficients, float(np.sqrt((rest**2).sum() / max(df, 1))), scores.shape[1])


def chosen(predicted: pd.DataFrame) -> str:
    """The combination of fewest terms whose prediction is within one standard error of the best one's.

    The one-standard-error rule of Breiman et al. (*Classification and Regression Trees*, 1984, §3.4.3): what the best
    has over such a one is less than what another draw of seeds would move it by. Of equally many terms the best wins.

    Args:
        predicted: as `Surface.predicted` gives it.

    >>> chosen(pd.DataFrame({"system": ["a", "b", "c"], "terms": [0, 1, 2], "value": [0.2, 0.49, 0.5], "error": 0.02}))
    'b'
    """
    best = predicted.loc[predicted["value"].idxmax()]
    near = predicted[predicted["value"] >= best["value"] - best["error"]]
    return str(near.sort_values(["terms", "value"], ascending=[True, False], kind="stable")["system"].iloc[0])


def front(table: pd.DataFrame, cost: str = "cost", value: str = "value") -> pd.Series:
    """Which rows are on the Pareto front: nothing else is both no dearer and no worse, and one of them better.

    Returns:
        Booleans by the table's index.

    >>> front(pd.DataFrame({"cost": [1.0, 2.0, 2.0, 3.0], "value": [0.2, 0.4, 0.3, 0.4]})).tolist()
    [True, True, False, False]
    """
    costs, values = (table[name].to_numpy(dtype=float) for name in (cost, value))
    cheaper, better = costs[:, None] <= costs[None], values[:, None] >= values[None]
    strictly = (costs[:, None] < costs[None]) | (values[:, None] > values[None])
    return pd.Series(~(cheaper & better & strictly).any(axis=0), index=table.index)


def priced(scores: Scores, design: Design, costs: pd.DataFrame) -> pd.DataFrame:
    """What the runs of a design scored in R@1 over what their steps cost, and which of them are on the front.

    Args:
        costs: of `cost.step_times`; combinations that are no runs of the design are predicted from it.

    Returns:
        Columns system, time (ratio), value, low, high (± 2 standard errors over seeds on these clips, from what the
        surface leaves of the runs; of a prediction its own), measured, front (of the runs).
    """
    values = responses(scores, design, "R@1").mean(axis=2)
    surface = fitted(design, values)
    runs = pd.DataFrame({"system": [label(high) for high in design.runs], "value": values.mean(axis=1)})
    runs = runs.assign(error=surface.error / np.sqrt(surface.blocks), measured=True)
    others = surface.predicted().drop(columns="terms").assign(measured=False)
    others = others[others["system"].isin(costs["system"]) & ~others["system"].isin(runs["system"])]
    times = costs.drop_duplicates("system")[["system", "time"]]
    table = pd.concat([runs, others], ignore_index=True).merge(times, on="system")
    table = table.assign(low=table["value"] - 2 * table["error"], high=table["value"] + 2 * table["error"])
    on = front(table[table["measured"]], "time").reindex(table.index, fill_value=False)
    return table.assign(front=on)[["system", "time", "value", "low", "high", "measured", "front"]]

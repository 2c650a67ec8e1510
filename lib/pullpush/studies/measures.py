"""What judges the claims that no single contrast of two systems does: numbers of whole experiments, by name.

MEASURES = {"prompt-ensemble": Measure(("pretrained",), ensemble)}
judge_measures(ledger, MEASURES, {"pretrained": scores})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference

Experiments = Mapping[str, Scores]


class Measure(NamedTuple):
    """needs: names of experiments; of: their scores → what the claim is about."""

    needs: Sequence[str]
    of: Callable[[Experiments], Difference]


def judge_measures(ledger: Ledger, measures: Mapping[str, Measure], scores: Experiments, *, only: bool = False) -> None:
    """Judge every claim that a measure is named for; leave it, with the reason, where an experiment is missing or lacks
    a point.

    Args:
        measures: by the names that claims give in `measure`.
        scores: by the names of the experiments.
        only: pass over measures that need other experiments than these.
    """
    for name, measure in measures.items():
        if only and not scores.keys() >= set(measure.needs):
            continue
        if absent := [needed for needed in measure.needs if not scores[needed]]:
            ledger.leave(name, f"{', '.join(absent)} is long and was not computed for these parameters and data")
            continue
        try:
            ledger.judge(name, measure.of(scores))
        except ExperimentError as error:
            ledger.leave(name, f"not in this profile's experiment: {error}")


def joined(tests: Sequence[Array]) -> Array:
    """Values `(S, N₁)`, `(S, N₂)` … of several tests as one, `(S, N₁ + N₂ …)`, whose mean is the mean of their means.

    >>> float(joined([np.ones((1, 1)), np.zeros((1, 3))]).mean())
    0.5
    """
    items = sum(values.shape[1] for values in tests)
    return np.concatenate([values * items / (len(tests) * values.shape[1]) for values in tests], axis=1)

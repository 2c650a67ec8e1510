"""Declarations as kept results tell of them: in words, and whatever their seeds are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pullpush.lab.experiments import Experiment


def without_seeds(experiment: Experiment) -> Experiment:
    """The same declaration, whatever its seeds are.

    >>> ten = Experiment.of("radius", {"InfoNCE": ("infonce", {})}, seeds=range(10))
    >>> without_seeds(ten) == without_seeds(replace(ten, seeds=(3,)))
    True
    """
    return replace(experiment, seeds=(0,), trials=tuple(replace(trial, seeds=()) for trial in experiment.trials))


def said(experiment: Experiment) -> dict[str, Any]:
    """A declaration to be read: systems with their recipes, what varies, data, languages, evaluations."""
    systems, varies = {str(trial.system): trial.recipe for trial in experiment.trials}, {}
    for name, value in (item for trial in experiment.trials for item in trial.where.items()):
        varies.setdefault(name, {})[str(value)] = None
    data = dict.fromkeys(trial.data or experiment.data for trial in experiment.trials)
    tested = dict.fromkeys(trial.test for trial in experiment.trials if trial.test)
    found = {"systems": systems, "varies": {name: list(values) for name, values in varies.items()}}
    found |= {"trained on": list(data), "tested on": list(tested)}
    found |= {"languages": list(experiment.languages), "evaluations": list(experiment.evaluations)}
    return {name: value for name, value in found.items() if value}

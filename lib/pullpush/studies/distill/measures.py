"""What judges the claims that no single contrast of two systems does: gains of gains, spreads, topics and truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pullpush.lab.comparisons import over
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference
from pullpush.studies.distill.comparisons import MAIN_SCORE, chosen_by_validation
from pullpush.studies.distill.stages import MAIN

AMBIGUOUS = "single"  # the world in which a caption fits most clips
CLUSTERS = ("4", "3, again")
ON_TOP = ("2, topics", "2, again")


def generalises(scores: Experiments) -> Difference:
    """What soft labels give under multiple annotation, less what they give under single, mAP@10."""
    where = {"ears": MAIN}
    both = [over(scores["systems"], ("2", "1, finetuned"), f"mAP@10 {kind}", where) for kind in ("multiple", "single")]
    return difference(*both)


def by_temperature(scores: Experiments) -> Difference:
    """The best of the teacher's temperatures over the worst, both by validation."""
    found = scores["softness"]
    trials = {
        str(trial): trial for trial in found.experiment.trials if trial.where["setting"] in ("teacher tau", "paper")
    }
    best, worst = (trials[name] for name in chosen_by_validation(found, trials))
    return found.contrast(best.system, worst.system, MAIN_SCORE, best.where, baseline_where=worst.where)


def by_number_of_topics(scores: Experiments) -> Difference:
    """The best number of topics over the worst, both by validation."""
    found = scores["topics"]
    trials = {trial.system: trial for trial in found.experiment.trials if trial.system.startswith("generic")}
    best, worst = chosen_by_validation(found, trials)
    if best == worst:
        raise ExperimentError("experiment 'topics' has one number of topics alone")
    return found.contrast(best, worst, MAIN_SCORE)


def mixed_gains(scores: Experiments) -> Difference:
    """What clusters give with those ears where they give most on validation, less where they give least."""
    found = scores["systems"]
    trials = {trial.where["ears"]: trial for trial in found.experiment.trials if trial.system == CLUSTERS[0]}
    lifts = {}
    for ears, trial in trials.items():
        other = found.trial(CLUSTERS[1], trial.where)
        lifts[ears] = np.mean(
            [_valid(found, trial, seed) - _valid(found, other, seed) for seed in found.seeds(*_at(trial))]
        )
    if len(lifts) < 2:
        raise ExperimentError("experiment 'systems' has one encoder alone")
    most, least = max(lifts, key=lifts.__getitem__), min(lifts, key=lifts.__getitem__)
    return difference(*(over(found, CLUSTERS, MAIN_SCORE, {"ears": ears}) for ears in (most, least)))


def _at(trial: object) -> tuple[str, Where]:
    return trial.system, trial.where  # pyrefly: ignore[missing-attribute]


def _valid(scores: Scores, trial: object, seed: int) -> float:
    return float(scores.rows(scores.history, trial, seed)["R@1"].max())  # pyrefly: ignore[bad-argument-type]


def where_ambiguous(pair: tuple[str, str]) -> Callable[[Experiments], Difference]:
    """What a system has over another in the most ambiguous world."""
    return lambda scores: difference(over(scores["ambiguity"], pair, MAIN_SCORE, {"world": AMBIGUOUS}))


MEASURES: Mapping[str, Measure] = {
    "distillation-by-annotation": Measure(("systems",), generalises),
    "teacher-temperature": Measure(("softness",), by_temperature),
    "number-of-topics": Measure(("topics",), by_number_of_topics),
    "cluster-gain-by-ears": Measure(("systems",), mixed_gains),
    "clusters-where-ambiguous": Measure(("ambiguity",), where_ambiguous(ON_TOP)),
}


def by_seed(values: Sequence[float]) -> Array:
    """One number a seed as values by seed and item, `(S, 1)`."""
    return np.array(values, float)[:, None]

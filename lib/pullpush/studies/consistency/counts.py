"""What each further language of training brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.scores import Scores
from pullpush.metrics import difference
from pullpush.studies.consistency.comparisons import contrasts


def language_order(seed: int, languages: Sequence[str] = LANGUAGES) -> tuple[str, ...]:
    """English, then the other languages in an order of the seed's own: KCL with K languages takes the first K."""
    return ("eng", *map(str, np.random.default_rng(seed).permutation(list(languages[1:]))))


def by_count(scores: Scores) -> pd.DataFrame:
    """Scores apart for languages that were trained on and those that were not: columns K, seed, group and the metrics.

    scores: of an experiment whose trials differ by K, train on `overrides["languages"]`, and have a seed each.
    """
    metrics = list(next(iter(scores.clips.values())))
    rows = []
    for trial in scores.experiment.trials:
        trained = trial.overrides["languages"]
        groups = {
            "English": ["eng"],
            "trained on": [name for name in trained if name != "eng"],
            "never trained on": [name for name in scores.experiment.languages if name not in trained],
            "all eight": list(scores.experiment.languages),
        }
        for group, names in groups.items():
            if names:
                means = {metric: _mean_of(scores, trial.where, metric, names) for metric in metrics}
                rows.append({"K": trial.where["K"], "seed": trial.where["order"], "group": group, **means})
    return pd.DataFrame(rows)


def _mean_of(scores: Scores, where: Mapping[str, Any], metric: str, languages: Sequence[str]) -> float:
    return float(np.mean([scores.values("kcl", metric, {**where, "language": name}).mean() for name in languages]))


def at_count(scores: Scores, count: int, metric: str, language: str | None = None) -> np.ndarray:
    """A metric after training on so many languages, by order and clip `(orders, N)`: of a language, or their mean."""
    orders = dict.fromkeys(trial.where["order"] for trial in scores.experiment.trials)
    asked = {"language": language} if language else {}
    return np.concatenate([scores.values("kcl", metric, {"K": count, "order": order, **asked}) for order in orders])


def count_gains(scores: Scores, pairs: Iterable[tuple[int, int]], metric: str = "T2A R@1") -> pd.DataFrame:
    """What training on K languages has over training on fewer, in English and in all eight; see `contrasts`."""
    return contrasts(
        (
            {"languages": title, "K": many, "over": few, "metric": metric},
            difference(at_count(scores, many, metric, language), at_count(scores, few, metric, language)),
        )
        for language, title in ((None, "all eight"), ("eng", "English"))
        for many, few in pairs
    )

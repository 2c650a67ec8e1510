"""What judges the claims about prompts, labels in many languages and spoken words: by the experiments "named-…"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import spearmanr

from pullpush.lab.experiments import ExperimentError
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference
from pullpush.metrics.jackknife import pseudo_values
from pullpush.studies.glap.comparisons import tests_of, values
from pullpush.studies.glap.experiments import NAMED, PROMPTS, READ
from pullpush.studies.measures import joined

KEYWORDS = "keywords "  # what the names of their tests begin with
OWN = {"sound": "sound", "sound recordings": "sound", "music": "music"}  # test → the prompt of its domain
ALL_PROMPTS = tuple(f"named-{kind}" for kind in PROMPTS)


def fewer_is_easier(scores: Experiments) -> Difference:
    """Rank correlation of accuracy and the number of words to choose from, over languages: pseudo-values by language
    and seed.
    """
    parts = list(spotted(scores["named-speech"], "GLAP").values())
    if len(parts) < 3:
        raise ExperimentError(f"{len(parts)} languages have no rank correlation")
    words = np.array([part.shape[1] for part in parts], float)
    accuracy = np.stack([part.mean(axis=1) for part in parts], axis=1)  # (S, languages)
    return difference([pseudo_values(_correlation, np.stack([words, row], axis=1)) for row in accuracy])


def spotted(scores: Scores, system: str) -> dict[str, Array]:
    """Accuracy of single words by language, by seed and word."""
    tests = [test for test in tests_of(scores) if test.startswith(KEYWORDS)]
    return {
        test.removeprefix(KEYWORDS): scores.values(system, f"accuracy {test.removeprefix(KEYWORDS)}", {"test": test})
        for test in tests
    }


def _correlation(pairs: Array) -> float:
    return float(spearmanr(pairs[:, 0], pairs[:, 1]).statistic)


def over_luck(parts: Sequence[Array]) -> Array:
    """Accuracies by seed and class of several tests, less the chance of each."""
    if not parts:
        raise ExperimentError("no test of keywords")
    return joined([part - 1 / part.shape[1] for part in parts])


def many_languages(scores: Experiments) -> Difference:
    """Accuracy over chance in the mean of all languages in which words are spoken."""
    return difference(over_luck(list(spotted(scores["named-speech"], "GLAP").values())))


def in_other_languages(scores: Experiments) -> Difference:
    """Accuracy over chance with labels that are not English, over tests and languages."""
    every = [
        over_luck([scores[f"named-{OWN[test]}"].values("GLAP", f"accuracy {each}", {"test": test}) for test in NAMED])
        for each in READ
        if each != "eng"
    ]
    return difference(np.mean(every, axis=0))


def of_words(pair: tuple[str, str], languages: Sequence[str]) -> Measure:
    """What a system has over another in naming spoken words, in the mean of languages."""

    def words(scores: Experiments) -> Difference:
        ours, theirs = (spotted(scores["named-speech"], system) for system in pair)
        if missing := [each for each in languages if each not in ours]:
            raise ExperimentError(f"no words in {', '.join(missing)}")
        return difference(joined([ours[each] - theirs[each] for each in languages]))

    return Measure(("named-speech",), words)


def of_prompts(first: str, second: str, tests: Sequence[str]) -> Measure:
    """Accuracy with one prompt of Table 3 less accuracy with another, on the same clips, in English."""

    def prompts(scores: Experiments) -> Difference:
        one, other = (values(scores[f"named-{kind}"], "GLAP", "accuracy eng", tests) for kind in (first, second))
        return difference(one, other)

    return Measure((f"named-{first}", f"named-{second}"), prompts)


def own_prompts(scores: Experiments) -> Difference:
    """Each domain with its own prompt over the mean of the other prompts."""
    parts = []
    for test, kind in (("sound", "sound"), ("music", "music"), ("keywords eng", "speech")):
        ours = scores[f"named-{kind}"].values("GLAP", "accuracy eng", {"test": test})
        others = [
            scores[f"named-{other}"].values("GLAP", "accuracy eng", {"test": test})
            for other in PROMPTS
            if other != kind
        ]
        parts.append(ours - np.mean(others, axis=0))
    return difference(joined(parts))


def of_languages(test: str, language: str, other: str = "eng") -> Measure:
    """Accuracy with labels in one language less accuracy with labels in another."""

    def labels(scores: Experiments) -> Difference:
        found = scores[f"named-{OWN[test]}"]
        return difference(*(found.values("GLAP", f"accuracy {each}", {"test": test}) for each in (language, other)))

    return Measure((f"named-{OWN[test]}",), labels)

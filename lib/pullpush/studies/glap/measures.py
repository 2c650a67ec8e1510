"""What judges the claims that no single contrast of two systems does: means over tests, gains of gains, ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import spearmanr

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference, pseudo_values
from pullpush.studies.glap.comparisons import by_chance, over_tests, tests_of, values
from pullpush.studies.glap.experiments import BRIEF, LOSS, MAIN, MUSIC, NAMED, PROMPTS, READ, SOUNDS, SPEECH
from pullpush.studies.measures import joined

SMALL, LARGE = 16, 64  # batches; the largest of those tried at which neither loss falls in the mean of the tests
LATE = 0.75  # from here on epochs are the last ones
QUIET = (*SOUNDS, *MUSIC)
FIVE = ("sound", "sound recordings", "music", "prompts eng", "keywords fra")  # Table 4's
HEARD = ("eng", "fra", "spa", "ita", "rus")  # languages of training that the text encoder reads
GENERAL: Where = {"ears": MAIN}
SOFTMAX = (LOSS, "InfoNCE")
TABLE_4 = "T2A mAP@10"
WITHOUT_SPEECH = ("GLAP", "no speech")
KEYWORDS = "keywords "  # what the names of their tests begin with
OWN = {"sound": "sound", "sound recordings": "sound", "music": "music"}  # test → the prompt of its domain


def alone(experiment: str, of: Callable[[Scores], Difference]) -> Measure:
    """What one experiment tells."""
    return Measure((experiment,), lambda scores: of(scores[experiment]))


def of_gain(
    experiment: str, pair: tuple[str, str], tests: Sequence[str], metric: str = "R@1", where: Where | None = None
) -> Measure:
    """What a system has over another in the mean of several tests."""
    return alone(experiment, lambda scores: difference(over_tests(scores, pair, metric, tests, where)))


def of_points(experiment: str, pair: tuple[str, str], first: Where, second: Where) -> Measure:
    """What a loss has over another at one point, less what it has at another."""
    return alone(
        experiment, lambda scores: difference(*(over_tests(scores, pair, "R@1", BRIEF, at) for at in (first, second)))
    )


def above_chance(experiment: str, system: str, test: str, metric: str, where: Where | None = None) -> Measure:
    """What a system has over a random order."""

    def distance(scores: Scores) -> Difference:
        found = values(scores, system, metric, [test], where)
        return difference(found - by_chance(metric, found.shape[1]))

    return alone(experiment, distance)


def speech_through_a_tagger(scores: Scores) -> Difference:
    """Speech, learnt by what hears sound events, less speech as the general encoder hears it."""
    return difference(*(values(scores, "all", "T2A R@1", SPEECH, {"ears": ears}) for ears in ("yamnet", MAIN)))


def best_before_end(scores: Scores) -> Difference:
    """How much of training comes after the best epoch, less the last part: by seed, as a share."""
    trial = scores.trial("all", {**GENERAL, "test": tests_of(scores)[0]})
    shares = []
    for seed in scores.seeds("all", trial.where):
        history = scores.rows(scores.history, trial, seed).sort_values("epoch")
        shares.append(LATE - history["epoch"].iloc[int(history["R@1"].argmax())] / history["epoch"].max())
    return difference(np.array(shares, float)[:, None])


def most_versatile(scores: Scores) -> Difference:
    """The general ears over the best other ones, in the mean of five tests."""
    others = dict.fromkeys(trial.system for trial in scores.experiment.trials if trial.system != MAIN)
    best = max(others, key=lambda name: float(values(scores, name, TABLE_4, FIVE).mean()))
    return difference(over_tests(scores, (MAIN, best), TABLE_4, FIVE))


def translated(scores: Scores) -> Difference:
    """What translated captions add in the languages other than English."""
    tests = [test for test in tests_of(scores) if not test.endswith(" eng")]
    return difference(over_tests(scores, ("GLAP", "English"), "T2A R@1", tests))


# ---------------------------------------------------------------- what is named


def named(scores: Scores, test: str, language: str = "eng", system: str = "GLAP") -> Array:
    """Accuracy of a test with prompts of a language, by seed and class, `(S, N)`."""
    return scores.values(system, f"accuracy {language}", {"test": test})


def spotted(scores: Scores, system: str) -> dict[str, Array]:
    """Accuracy of single words by language, by seed and word."""
    tests = [test for test in tests_of(scores) if test.startswith(KEYWORDS)]
    return {(each := test.removeprefix(KEYWORDS)): named(scores, test, each, system) for test in tests}


def over_luck(parts: Sequence[Array]) -> Array:
    """Accuracies by seed and class of several tests, less the chance of each."""
    if not parts:
        raise ExperimentError("no test of keywords")
    return joined([part - 1 / part.shape[1] for part in parts])


def fewer_is_easier(scores: Scores) -> Difference:
    """Rank correlation of accuracy and the number of words to choose from, over languages: pseudo-values by language
    and seed.
    """
    parts = list(spotted(scores, "GLAP").values())
    if len(parts) < 3:
        raise ExperimentError(f"{len(parts)} languages have no rank correlation")
    words = np.array([part.shape[1] for part in parts], float)
    accuracy = np.stack([part.mean(axis=1) for part in parts], axis=1)  # (S, languages)
    return difference([pseudo_values(_correlation, np.stack([words, row], axis=1)) for row in accuracy])


def _correlation(pairs: Array) -> float:
    return float(spearmanr(pairs[:, 0], pairs[:, 1]).statistic)


def in_other_languages(scores: Experiments) -> Difference:
    """Accuracy over chance with labels that are not English, over tests and languages."""
    every = [
        over_luck([named(scores[f"named-{OWN[test]}"], test, each) for test in NAMED]) for each in READ if each != "eng"
    ]
    return difference(np.mean(every, axis=0))


def of_words(languages: Sequence[str]) -> Measure:
    """What speech among the clips adds to naming spoken words, in the mean of languages."""

    def words(scores: Scores) -> Difference:
        ours, theirs = (spotted(scores, system) for system in WITHOUT_SPEECH)
        if missing := [each for each in languages if each not in ours]:
            raise ExperimentError(f"no words in {', '.join(missing)}")
        return difference(joined([ours[each] - theirs[each] for each in languages]))

    return alone("named-speech", words)


def of_prompts(first: str, second: str, tests: Sequence[str]) -> Measure:
    """Accuracy with one prompt of Table 3 less accuracy with another, on the same clips, in English."""
    names = tuple(f"named-{kind}" for kind in (first, second))
    return Measure(
        names, lambda scores: difference(*(values(scores[each], "GLAP", "accuracy eng", tests) for each in names))
    )


def own_prompts(scores: Experiments) -> Difference:
    """Each domain with its own prompt over the mean of the other prompts."""
    parts = []
    for test, own in (("sound", "sound"), ("music", "music"), ("keywords eng", "speech")):
        by_kind = {kind: named(scores[f"named-{kind}"], test) for kind in PROMPTS}
        parts.append(by_kind.pop(own) - np.mean(list(by_kind.values()), axis=0))
    return difference(joined(parts))


def of_languages(test: str, language: str, other: str = "eng") -> Measure:
    """Accuracy with labels in one language less accuracy with labels in another."""
    return alone(
        f"named-{OWN[test]}", lambda scores: difference(*(named(scores, test, each) for each in (language, other)))
    )


MEASURES: Mapping[str, Measure] = {
    "sigmoid-over-softmax": of_gain("batches", SOFTMAX, BRIEF, where={"batch": LARGE}),
    "gain-by-batch": of_points("batches", SOFTMAX, {"batch": LARGE}, {"batch": SMALL}),
    "gain-by-data": of_points("amounts", SOFTMAX, {"data": "all"}, {"data": "quarter"}),
    "best-before-end": alone("domains", best_before_end),
    "balanced-sampling": of_gain("sampling", ("balanced", "proportional"), QUIET),
    "translated-captions": alone("translations", translated),
    "speech-data-alone": alone("domains", speech_through_a_tagger),
    "no-speech": of_gain("domains", ("silent", "all"), SPEECH, "T2A R@1", GENERAL),
    "no-compromise": of_gain("domains", ("all", "silent"), QUIET, where=GENERAL),
    "silent-at-chance": above_chance("domains", "silent", "prompts eng", "T2A R@1", GENERAL),
    "general-over-tagger-in-speech": of_gain("encoders", (MAIN, "yamnet"), FIVE[3:], TABLE_4),
    "most-versatile": alone("encoders", most_versatile),
    "own-prompts": Measure(tuple(f"named-{kind}" for kind in PROMPTS), own_prompts),
    "sound-prompt": of_prompts("sound", "speech", SOUNDS),
    "music-prompt": of_prompts("music", "speech", ["music"]),
    "speech-label": of_prompts("speech", "sound", ["keywords eng"]),
    "keywords-english": of_words(["eng"]),
    "keywords-heard": of_words(HEARD),
    "sentences": of_gain("named-speech", WITHOUT_SPEECH, ["prompts eng"], "accuracy eng"),
    "silent-keywords": above_chance("named-speech", "no speech", "keywords eng", "accuracy eng"),
    "keywords-many-languages": alone(
        "named-speech", lambda scores: difference(over_luck(list(spotted(scores, "GLAP").values())))
    ),
    "fewer-keywords-easier": alone("named-speech", fewer_is_easier),
    "named-in-other-languages": Measure(("named-sound", "named-music"), in_other_languages),
    "german-sounds": of_languages("sound", "deu"),
    "chinese-recordings": of_languages("sound recordings", "zho"),
    "japanese-music": of_languages("music", "jpn"),
    "russian-sounds": of_languages("sound", "rus", "deu"),
    "russian-recordings": of_languages("sound recordings", "rus", "deu"),
    "russian-music": of_languages("music", "rus", "deu"),
}

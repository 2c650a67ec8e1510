"""What judges the claims that no single contrast of two systems does: means over tests, gains of gains, ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pullpush.lab.experiments import Where
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference
from pullpush.studies.glap.comparisons import by_chance, over_tests, tests_of, values
from pullpush.studies.glap.experiments import BRIEF, MUSIC, SOUNDS, SPEECH
from pullpush.studies.glap.naming import (
    ALL_PROMPTS,
    fewer_is_easier,
    in_other_languages,
    many_languages,
    of_languages,
    of_prompts,
    of_words,
    own_prompts,
)
from pullpush.studies.glap.searches import LOSS, MAIN
from pullpush.studies.measures import joined

SMALL, LARGE = 16, 64  # batches; the largest of those tried at which neither loss falls in the mean of the tests
LATE = 0.75  # from here on epochs are the last ones
QUIET = (*SOUNDS, *MUSIC)
FIVE = ("sound", "sound recordings", "music", "prompts eng", "keywords fra")  # Table 4's
HEARD = ("eng", "fra", "spa", "ita", "rus")  # languages of training that the text encoder reads
GENERAL: Where = {"ears": MAIN}
SOFTMAX = (LOSS, "InfoNCE")
TABLE_4 = "T2A mAP@10"
NO_SPEECH = ("GLAP", "no speech")


def of_gain(
    experiment: str,
    pair: tuple[str, str],
    tests: Sequence[str],
    metric: str = "R@1",
    where: Where | None = None,
    baseline_where: Where | None = None,
) -> Measure:
    """What a system has over another in the mean of several tests."""

    def gain(scores: Experiments) -> Difference:
        return difference(over_tests(scores[experiment], pair, metric, tests, where, baseline_where=baseline_where))

    return Measure((experiment,), gain)


def of_points(experiment: str, pair: tuple[str, str], first: Where, second: Where) -> Measure:
    """What a loss has over another at one point, less what it has at another."""

    def points(scores: Experiments) -> Difference:
        one, other = (over_tests(scores[experiment], pair, "R@1", BRIEF, at) for at in (first, second))
        return difference(one, other)

    return Measure((experiment,), points)


def above_chance(
    experiment: str, system: str, tests: Sequence[str], metric: str, where: Where | None = None
) -> Measure:
    """What a system has over a random order, in the mean of several tests."""

    def distance(scores: Experiments) -> Difference:
        return difference(over_chance(scores[experiment], system, tests or tests_of(scores[experiment]), metric, where))

    return Measure((experiment,), distance)


def over_chance(scores: Scores, system: str, tests: Sequence[str], metric: str, where: Where | None = None) -> Array:
    """A score less chance by seed and clip or class, over several tests, `(S, N)`."""
    parts = [scores.values(system, metric, {**(where or {}), "test": test}) for test in tests]
    return joined([part - by_chance(metric, part) for part in parts])


def best_before_end(scores: Experiments) -> Difference:
    """How much of training comes after the best epoch, less the last part: by seed, as a share."""
    found = scores["domains"]
    trial = found.trial("all", {**GENERAL, "test": tests_of(found)[0]})
    shares = []
    for seed in found.seeds("all", trial.where):
        history = found.rows(found.history, trial, seed).sort_values("epoch")
        shares.append(LATE - history["epoch"].iloc[int(history["R@1"].argmax())] / history["epoch"].max())
    return difference(np.array(shares, float)[:, None])


def most_versatile(scores: Experiments) -> Difference:
    """The general ears over the best other ones, in the mean of five tests."""
    found = scores["encoders"]
    others = [trial.system for trial in found.experiment.trials if trial.system != MAIN]
    best = max(dict.fromkeys(others), key=lambda name: float(values(found, name, TABLE_4, FIVE).mean()))
    return difference(over_tests(found, (MAIN, best), TABLE_4, FIVE))


def translated(scores: Experiments) -> Difference:
    """What translated captions add in the languages other than English."""
    found = scores["translations"]
    tests = [test for test in tests_of(found) if not test.endswith(" eng")]
    return difference(over_tests(found, ("GLAP", "English"), "T2A R@1", tests))


MEASURES: Mapping[str, Measure] = {
    "sigmoid-over-softmax": of_gain("batches", SOFTMAX, BRIEF, where={"batch": LARGE}),
    "gain-by-batch": of_points("batches", SOFTMAX, {"batch": LARGE}, {"batch": SMALL}),
    "gain-by-data": of_points("amounts", SOFTMAX, {"data": "all"}, {"data": "quarter"}),
    "best-before-end": Measure(("domains",), best_before_end),
    "balanced-sampling": of_gain("sampling", ("balanced", "proportional"), QUIET),
    "translated-captions": Measure(("translations",), translated),
    "speech-data-alone": of_gain("domains", ("all", "all"), SPEECH, "T2A R@1", {"ears": "yamnet"}, GENERAL),
    "no-speech": of_gain("domains", ("silent", "all"), SPEECH, "T2A R@1", GENERAL),
    "no-compromise": of_gain("domains", ("all", "silent"), QUIET, where=GENERAL),
    "silent-at-chance": above_chance("domains", "silent", ["prompts eng"], "T2A R@1", GENERAL),
    "general-over-tagger-in-speech": of_gain("encoders", (MAIN, "yamnet"), FIVE[3:], TABLE_4),
    "most-versatile": Measure(("encoders",), most_versatile),
    "own-prompts": Measure(ALL_PROMPTS, own_prompts),
    "sound-prompt": of_prompts("sound", "speech", SOUNDS),
    "music-prompt": of_prompts("music", "speech", ["music"]),
    "speech-label": of_prompts("speech", "sound", ["keywords eng"]),
    "keywords-english": of_words(NO_SPEECH, ["eng"]),
    "keywords-heard": of_words(NO_SPEECH, HEARD),
    "sentences": of_gain("named-speech", NO_SPEECH, ["prompts eng"], "accuracy eng"),
    "silent-keywords": above_chance("named-speech", "no speech", ["keywords eng"], "accuracy eng"),
    "keywords-many-languages": Measure(("named-speech",), many_languages),
    "fewer-keywords-easier": Measure(("named-speech",), fewer_is_easier),
    "named-in-other-languages": Measure(("named-sound", "named-music"), in_other_languages),
    "german-sounds": of_languages("sound", "deu"),
    "chinese-recordings": of_languages("sound recordings", "zho"),
    "japanese-music": of_languages("music", "jpn"),
    "russian-sounds": of_languages("sound", "rus", "deu"),
    "russian-recordings": of_languages("sound recordings", "rus", "deu"),
    "russian-music": of_languages("music", "rus", "deu"),
}

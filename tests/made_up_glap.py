"""Experiments of chapter 5's lab as its page declares them, and scores of them that nobody trained."""

import numpy as np
import pandas as pd

from pullpush.lab.scores import Scores
from pullpush.studies.glap import experiments
from pullpush.studies.glap.experiments import ENCODERS, MAIN, OBJECTIVES, SIZES, Run, on_tests, sought, tuned
from pullpush.studies.glap.length import ALONE, AMONG, over_length

SEEDS = (0, 1, 2)
WORDS = {"eng": 30, "fra": 20, "spa": 25, "ita": 15, "rus": 40, "slv": 10}
TESTS = experiments.Tests(keywords=(*(f"keywords {each}" for each in WORDS), "prompts eng"))
ASKED = (*TESTS.named, *TESTS.keywords)
SPOKEN = [f"accuracy {each}" for each in WORDS]
RANKS = ("T2A R@1", "A2T R@1", "T2A R@10", "A2T R@10", "R@1", "T2A mAP@10")


def declared():
    """All of them, as if no search had chosen anything."""
    one = tuned({})
    through = {
        "encoders": ENCODERS,
        "sound-effects": ("speech_embedding", "sfx"),
        **dict.fromkeys(("objectives", "objectives-again", "masked-in-music"), OBJECTIVES),
        "upper": experiments.UPPER,
    }
    from_mixes = [Run(label, one, mix=mix) for label, mix in experiments.LEARNT_FROM.items()]
    runs = {name: [Run(each, one, each) for each in encoders] for name, encoders in through.items()}
    runs["domains"] = [Run(mix, one, each, mix, {"ears": each}) for mix in experiments.MIXES for each in ENCODERS]
    runs["sampling"] = [Run("proportional", one, mix="skewed"), Run("balanced", tuned({}, lr=1e-3), mix="skewed")]
    tests = dict.fromkeys(runs, TESTS.retrieved) | {"translations": TESTS.translated}
    runs["translations"] = from_mixes
    runs["equal-steps"] = [
        Run(label, experiments.at_size({}, label, size, 6), where={"batch": size})
        for label in dict.fromkeys((*experiments.BY_BATCH, *experiments.AT_STEPS))
        for size in SIZES
    ]
    runs["equal-steps-again"] = runs["equal-steps"]
    runs["amounts"] = [
        Run(loss, tuned({}, loss), mix=mix, where={"data": mix})
        for mix in ("all", "quarter")
        for loss in ("InfoNCE", "SigLIP")
    ]
    runs["code"] = [
        Run(label, (one[0] + term, options)) for label, (term, options) in experiments.PUBLISHED_CODE.items()
    ]
    tests |= dict.fromkeys(("equal-steps", "equal-steps-again", "amounts", "code"), TESTS.brief)
    for kind in experiments.PROMPTS:
        runs[f"named-{kind}"] = [*from_mixes, Run("tagger", one, "yamnet")]
        tests[f"named-{kind}"] = TESTS.asked(kind)
    runs["commands"], tests["commands"] = runs["named-speech"], ["commands"]
    made = {name: on_tests(name, several, tests[name], seeds=SEEDS) for name, several in runs.items()}
    told = [Run("GLAP", one), Run("no speech", one, mix="silent"), Run("yamnet", one, "yamnet")]
    made["over-length"] = over_length(told, experiments.SPEECH, TESTS.keywords, seeds=SEEDS)
    losses = {label: (system, MAIN) for label, system in experiments.LOSSES.items()}
    return made | {"search": sought("search", losses, {"lr": experiments.RATES}, seeds=(1000,))}


def scores(experiment, level, metrics, *, clips=40, noise=0.01):
    """Scores that nobody trained: level(trial, metric) and noise of each clip, and of each run."""
    rng = np.random.default_rng(0)
    found = {}
    for trial, seed in experiment.cells:
        test = trial.where.get("test", "")
        count = WORDS.get(test.removeprefix("keywords "), clips) if test.startswith("keywords") else clips
        found[str(trial), seed] = {
            name: level(trial, name) + rng.normal(0, noise, count)
            for name in metrics
            if not test.startswith("keywords") or "accuracy" not in name or name.endswith(test[-3:])
        }
    history = pd.DataFrame(
        [
            {"system": trial.system, **trial.where, "seed": seed, "epoch": epoch, "step": epoch, "R@1": min(epoch, 4)}
            for trial, seed in experiment.cells
            for epoch in range(1, 9)
        ]
    )
    steps = history.assign(bias=-8.0, tau=0.1)
    return Scores(experiment, found, history, steps, None)  # pyrefly: ignore[bad-argument-type]


def found():
    """Scores of every experiment; all of one is alike but for what is named here."""
    made = declared()

    def of_domains(trial, metric):
        silent = trial.system == "silent" and trial.where["test"] in experiments.SPEECH
        return 1 / 40 if silent else 0.5 - 0.2 * (trial.where["ears"] == "yamnet")

    def of_batches(trial, metric):
        return 0.4 + (0.05 if (trial.system, trial.where["batch"]) == ("SigLIP", 1024) else 0.0)

    def of_words(trial, metric):
        return 1 / WORDS["eng"] if trial.system == "no speech" else 0.6 - 0.005 * WORDS.get(trial.where["test"][-3:], 0)

    levels = {
        "domains": of_domains,
        "encoders": lambda trial, metric: 0.3 + 0.1 * (trial.system == "several"),
        "equal-steps": of_batches,
        "equal-steps-again": of_batches,
        "amounts": lambda trial, metric: 0.4 + 0.03 * (str(trial).startswith("SigLIP data=all")),
        "sampling": lambda trial, metric: 0.3 + 0.02 * (trial.system == "balanced"),
        "translations": lambda trial, metric: 0.2 + 0.1 * (trial.system == "GLAP"),
    }
    result = {name: scores(made[name], level, RANKS) for name, level in levels.items()}
    labels = [f"accuracy {each}" for each in experiments.READ]
    for kind, level in (("sound", 0.7), ("music", 0.5)):
        result[f"named-{kind}"] = scores(made[f"named-{kind}"], lambda trial, metric, level=level: level, labels)
    result["commands"] = scores(made["commands"], of_words, labels)
    of_length = {ALONE: 0.1, "no speech": 0.1, "yamnet": 0.3}
    among = [f"{side} R@1{AMONG}" for side in ("T2A", "A2T")]
    result["over-length"] = scores(
        made["over-length"], lambda trial, metric: of_length.get(trial.system, 0.5), [*among, *RANKS, *SPOKEN]
    )
    result["named-speech"] = scores(made["named-speech"], of_words, dict.fromkeys([*SPOKEN, *labels]))
    return result

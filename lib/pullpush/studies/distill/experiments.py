"""The experiments of the lab of chapter 6.

    scores = page.run(systems(ground, seeds=range(3)))

All are scored by `metrics.annotations` on the same test clips, whatever they learnt from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pullpush.lab.experiments import Experiment, Trial
from pullpush.studies.distill.grounds import Grounds, smoothed
from pullpush.studies.distill.stages import ENCODERS, ENSEMBLE, GRID, LAST, MAIN, SYSTEMS, Stage
from pullpush.training.recipes import weighted

SCORES = ("mAP@16 multiple", "R@1 single")  # that comparisons show
SOFT, PLAIN = SYSTEMS["2"], SYSTEMS["1, finetuned"]
# What a step adds over a control of as many passes, and over what the paper compares it with.
FAIR = (
    ("2", "1, finetuned"),
    ("3", "2"),
    ("4", "3, again"),
    ("5", "3, again"),
    ("5", "1, again"),
    ("5", "2, again"),
)
AS_PRINTED = (("2", "1"), ("4", "3"), ("5", "3"), ("5", "1"), ("5", "2"))
LONGER = ("1, again", "2, again")  # controls of what all three stages give, with the first encoder alone
AMBIGUOUS = ("pairs", "narrow", "single")
BY_WORLD = (("2", "1, finetuned"), ("2, topics", "2, again"))
NONE, SMOOTH = "no soft labels", "label smoothing"
LABELS: Mapping[str, str] = {
    "ensemble": ENSEMBLE,
    "YAMNet alone": "yamnet",
    "reconstruction alone": "reconstruction",
    "prediction alone": "prediction",
    "untrained": "untrained",
    "random": "blind",
    "truth": "truth",
}
UNTAUGHT = "all, no soft labels"


def trial(ground: Grounds, name: str, stage: Stage, where: Mapping[str, Any] | None = None, **overrides: Any) -> Trial:
    """A system, tested on the clips of the finetuning world."""
    test = Stage("finetune", encoder=stage.encoder, world=stage.world)
    return ground.trial(name, stage, test, where, **overrides)


def long(name: str, trials: Iterable[Trial], seeds: Iterable[int]) -> Experiment:
    """An experiment that takes more than the page's minutes."""
    return Experiment(name, tuple(trials), tuple(seeds), evaluations=("annotations",), long=True)


def search(
    ground: Grounds, kind: str, *, encoders: Sequence[str] = tuple(ENCODERS), seeds: Iterable[int]
) -> Experiment:
    """The rates of a kind of stage for every system of it, on validation; kind: "pretrain" or "finetune"."""
    stages = {stage.label: stage for stage in SYSTEMS.values() if stage.kind == kind}
    trials = [
        trial(ground, f"{name}, {encoder}", replace(stage, encoder=encoder), {"lr": lr}, lr=lr)
        for name, stage in stages.items()
        for encoder in encoders
        for lr in GRID[kind]
    ]
    return long(f"search-{kind}", trials, seeds)


def systems(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """The systems of Table 1 with each of the three encoders: Table 2; 23 runs a seed."""
    trials = [
        trial(ground, name, replace(stage, encoder=encoder), {"ears": encoder})
        for encoder in ENCODERS
        for name, stage in SYSTEMS.items()
        if encoder == MAIN or name not in LONGER
    ]
    return replace(long("systems", trials, seeds), long=False)


def teachers(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """Who teaches; beside them binary labels alone, and label smoothing of the ensemble's entropy."""
    trials = [trial(ground, name, Stage("finetune", teacher)) for name, teacher in {NONE: "", **LABELS}.items()]
    return long("teachers", [*trials, smoothed(trial(ground, SMOOTH, SOFT))], seeds)


def softness(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """λ₁ and the teacher's temperature, one at a time, beside the paper's 1 and 0.05."""
    weights = {each: weighted(SOFT.recipe, distillation=each) for each in (0.3, 3.0)}
    taus = {each: {"teacher_tau": each} for each in (0.0125, 0.1, 0.4)}
    trials = [
        trial(ground, "2", SOFT, {"setting": setting, "at": at}, **overrides)
        for setting, values in {"paper": {1.0: {}}, "weight": weights, "teacher tau": taus}.items()
        for at, overrides in values.items()
    ]
    return long("softness", trials, seeds)


def ambiguity(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """Worlds of growing ambiguity: what soft labels give, and topics on top of them; the first encoder's model teaches
    its own successor, for an ensemble would need all three in each world.
    """
    stages = {
        "1, finetuned": PLAIN,
        "2": Stage("finetune", MAIN),
        "2, again": Stage("refinetune", MAIN),
        "2, topics": Stage("refinetune", MAIN, topics="generic"),
    }
    trials = [
        trial(ground, name, replace(stage, world=world), {"world": world})
        for world in AMBIGUOUS
        for name, stage in stages.items()
    ]
    return long("ambiguity", trials, seeds)


def topics(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """How many topics, and what they are; beside them the same passes without any."""
    sources = {kind: kind for kind in ("finetuned", "generic", "random", "truth")}
    sources |= {f"generic, {count}": f"generic:{count}" for count in (6, 48)}
    again = SYSTEMS["3, again"]
    trials = [trial(ground, name, replace(again, topics=each)) for name, each in {"no topics": "", **sources}.items()]
    return long("topics", trials, seeds)


def augmentation(ground: Grounds, *, seeds: Iterable[int]) -> Experiment:
    """The parts of the augmentation one at a time and together, with soft labels; and together without them."""
    stages = {"none": SOFT, "all": LAST}
    stages |= {part: replace(SOFT, augment=part) for part in ("back-translation", "deletion", "synonyms", "mix")}
    stages[UNTAUGHT] = Stage("finetune", augment="all")
    return long("augmentation", [trial(ground, *each) for each in stages.items()], seeds)


def against(experiment: Experiment, baseline: str) -> list[tuple[str, str]]:
    """Every system of an experiment with the same baseline."""
    return [(trial.system, baseline) for trial in experiment.trials if trial.system != baseline]

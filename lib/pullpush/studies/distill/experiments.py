"""The experiments of the lab of chapter 6, declared against the views of grounds.py.

    scores = compute.run(ground, systems(ground, seeds=range(3)))

All are scored by `metrics.annotations` on the same test clips, whatever they learnt from; the column "ears" says what
they hear through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.scores import Scores
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.rates import GRID, label
from pullpush.studies.distill.stages import EARS, ENSEMBLE, LAST, MAIN, SYSTEMS, WORLD, Stage
from pullpush.training.recipes import weighted

EVERY: Mapping[str, Any] = {"long": True, "evaluations": ("annotations",)}
SCORES = ("mAP@16 multiple", "R@1 single")  # that comparisons show
SOFT = Stage("finetune", ENSEMBLE)
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
WORLDS = ("pairs", "narrow", "single")
BY_WORLD = (("2", "1, finetuned"), ("2, topics", "2, again"))
COUNTS = (6, 48)
TESTED = Stage("finetune")


def trial(
    ground: Grounds,
    name: str,
    stage: Stage,
    ears: str = MAIN,
    ambiguity: str = WORLD,
    where: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Trial:
    """A system as a trial: its stage's view and recipe, tested on the clips of the finetuning world."""
    recipe, options = ground.system(stage, ears, **overrides)
    return Trial(name, recipe, options, dict(where or {}), stage.named(ears, ambiguity), TESTED.named(ears, ambiguity))


def search(
    ground: Grounds, kind: str, *, ears: Sequence[str] = tuple(EARS), rates: Sequence[float] = (), seeds: Iterable[int]
) -> Experiment:
    """The rates of a kind of stage for every system of it, on validation; kind: "pretrain" or "finetune"."""
    stages = {label(stage): stage for stage in SYSTEMS.values() if stage.kind == kind}
    trials = [
        trial(ground, f"{name}, {each}", stage, each, where={"lr": lr}, lr=lr)
        for name, stage in stages.items()
        for each in ears
        for lr in rates or GRID[kind]
    ]
    return Experiment(f"search-{kind}", tuple(trials), tuple(seeds), **EVERY)


LONGER = ("1, again", "2, again")  # controls of what all three stages give, after the first ears alone


def systems(
    ground: Grounds, names: Sequence[str] = tuple(SYSTEMS), ears: Sequence[str] = tuple(EARS), *, seeds: Iterable[int]
) -> Experiment:
    """The systems of Table 1, each after each of the three encoders: Table 2; 23 runs a seed."""
    trials = [
        trial(ground, name, SYSTEMS[name], each, where={"ears": each})
        for each in ears
        for name in names
        if each == ears[0] or name not in LONGER
    ]
    return Experiment("systems", tuple(trials), tuple(seeds), evaluations=EVERY["evaluations"])


LABELS: Mapping[str, str] = {
    "ensemble": "ensemble",
    "YAMNet alone": "yamnet",
    "reconstruction alone": "reconstruction",
    "prediction alone": "prediction",
    "untrained": "untrained",
    "random": "blind",
    "truth": "truth",
}
ASKED = {label: name for label, name in LABELS.items() if name != "truth"}  # that are compared with the truth
NONE, SMOOTH = "no soft labels", "label smoothing"


def teachers(ground: Grounds, names: Sequence[str] = tuple(LABELS), *, seeds: Iterable[int]) -> Experiment:
    """Who teaches; beside them binary labels alone, and label smoothing of the ensemble's entropy."""
    trials = [trial(ground, NONE, Stage("finetune"))]
    trials += [trial(ground, name, Stage("finetune", LABELS[name])) for name in names]
    smoothed = trial(ground, SMOOTH, SOFT)
    options = {**smoothed.overrides, "like_teacher": True}
    trials.append(Trial(SMOOTH, "infonce+label-smoothing", options, {}, smoothed.data, smoothed.test))
    return Experiment("teachers", tuple(trials), tuple(seeds), **EVERY)


def softness(
    ground: Grounds, weights: Sequence[float] = (0.3, 3.0), taus: Sequence[float] = (), *, seeds: Iterable[int]
) -> Experiment:
    """λ₁ and the teacher's temperature, one at a time, beside the paper's 1 and 0.05."""
    taus = taus or (0.0125, 0.1, 0.4)
    paper = {"setting": "paper", "at": 1.0}
    trials = [trial(ground, "2", SOFT, where=paper)]
    trials += [
        trial(ground, "2", SOFT, where={"setting": "weight", "at": each}, **weighted(SOFT.recipe, distillation=each))
        for each in weights
    ]
    trials += [
        trial(ground, "2", SOFT, where={"setting": "teacher tau", "at": each}, teacher_tau=each) for each in taus
    ]
    return Experiment("softness", tuple(trials), tuple(seeds), **EVERY)


def ambiguity(ground: Grounds, worlds: Sequence[str] = WORLDS, *, seeds: Iterable[int]) -> Experiment:
    """Worlds of growing ambiguity: what soft labels give, and topics on top of them; the first ears teach themselves,
    for an ensemble would need all three in each world.
    """
    stages = {
        "1, finetuned": Stage("finetune"),
        "2": Stage("finetune", MAIN),
        "2, again": Stage("refinetune", MAIN),
        "2, topics": Stage("refinetune", MAIN, topics="generic"),
    }
    trials = [
        trial(ground, name, stage, MAIN, world, {"world": world}) for world in worlds for name, stage in stages.items()
    ]
    return Experiment("ambiguity", tuple(trials), tuple(seeds), **EVERY)


def topics(
    ground: Grounds,
    counts: Sequence[int] = COUNTS,
    kinds: Sequence[str] = ("generic", "random", "truth"),
    *,
    seeds: Iterable[int],
) -> Experiment:
    """How many topics, and what they are; beside them the same passes without any."""
    again = SYSTEMS["3, again"]
    trials = [trial(ground, "no topics", again)]
    trials += [trial(ground, kind, Stage("refinetune", ENSEMBLE, "all", kind)) for kind in ("finetuned", *kinds)]
    trials += [
        trial(ground, f"generic, {count}", Stage("refinetune", ENSEMBLE, "all", f"generic:{count}")) for count in counts
    ]
    return Experiment("topics", tuple(trials), tuple(seeds), **EVERY)


PARTS = ("back-translation", "deletion", "synonyms", "mix")
UNTAUGHT = "all, no soft labels"


def augmentation(ground: Grounds, parts: Sequence[str] = PARTS, *, seeds: Iterable[int]) -> Experiment:
    """The parts of the augmentation one at a time and together, with soft labels; and together without them."""
    trials = [trial(ground, "none", SOFT), trial(ground, "all", LAST)]
    trials += [trial(ground, part, Stage("finetune", ENSEMBLE, part)) for part in parts]
    trials.append(trial(ground, UNTAUGHT, Stage("finetune", "", "all")))
    return Experiment("augmentation", tuple(trials), tuple(seeds), **EVERY)


def by_part(scores: Scores) -> list[tuple[str, str]]:
    """Each part of the augmentation against none, and all of it without soft labels against it with."""
    names = [trial.system for trial in scores.experiment.trials]
    return [(name, "none") for name in names if name not in ("none", UNTAUGHT)] + [(UNTAUGHT, "all")]


def by_topics(scores: Scores) -> list[tuple[str, str]]:
    """Every source and number of topics against none."""
    names = [trial.system for trial in scores.experiment.trials]
    return [(name, "no topics") for name in names if name != "no topics"]

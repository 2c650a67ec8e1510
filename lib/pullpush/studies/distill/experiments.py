"""The experiments of chapter 6 as data, tables beside the paper's, and what judges claims that no contrast does."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pullpush.lab.comparisons import shown
from pullpush.lab.contrasts import Experiments
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.ledger import Measure
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference
from pullpush.studies.distill.data import Context
from pullpush.studies.distill.stages import (
    DOSED,
    ENCODERS,
    ENSEMBLE,
    GRID,
    LAST,
    MAIN,
    MOVED,
    SMOOTHING,
    SYSTEMS,
    Stage,
)
from pullpush.training.recipes import weighted

SCORES = ("mAP@16 multiple", "R@1 single")  # that comparisons show
MAIN_SCORE = SCORES[0]
TABLE_2 = ("mAP@10 multiple", "mAP@16 multiple", "mAP@10 single", "R@1 single", "R@5 single", "R@10 single")
STANDS_FOR: Mapping[str, str] = {"yamnet": "PaSST", "reconstruction": "EAT", "prediction": "BEATs"}
NAMES: Mapping[str, str] = {  # what figures write of encoders and scores
    **{encoder: f"{encoder} (for {theirs})" for encoder, theirs in STANDS_FOR.items()},
    **{metric: "{}, {} annotation".format(*metric.split(" ")) for metric in TABLE_2},
}

# What a step adds over a control of as many passes, and over what the paper compares it with.
FAIR = [("2", "1, finetuned"), ("3", "2"), ("4", "3, again"), ("5", "3, again"), ("5", "1, again"), ("5", "2, again")]
AS_PRINTED = [("2", "1"), ("4", "3"), ("5", "3"), ("5", "1"), ("5", "2")]
LONGER = ("1, again", "2, again")  # controls of what all three stages give, with the first encoder alone
AMBIGUOUS = ("pairs", "narrow", "single")
NONE, SMOOTH, WITHOUT = "no soft labels", "label smoothing", "all, no soft labels"
TEACHERS: Mapping[str, str] = {
    "ensemble": ENSEMBLE,
    **{f"{'YAMNet' if encoder == MAIN else encoder} alone": encoder for encoder in ENCODERS},
    "untrained": "untrained",
    "random": "blind",
    "truth": "truth",
}
SOFT, AGAIN = SYSTEMS["2"], SYSTEMS["3, again"]
TOPICAL = SYSTEMS["5"].recipe
TOPIC_SOURCES = ("generic", "random", "truth")


class Row(NamedTuple):
    """A system of an experiment; where: what else tells it apart; options: recipe, and overrides of it."""

    system: str
    stage: Stage
    where: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}


ROWS: Mapping[str, Sequence[Row]] = {
    "systems": [  # Table 2
        Row(name, replace(stage, encoder=encoder), {"ears": encoder})
        for encoder in ENCODERS
        for name, stage in SYSTEMS.items()
        if encoder == MAIN or name not in LONGER
    ],
    "teachers": [  # who teaches; beside them binary labels alone, and smoothing of the ensemble's entropy
        *(Row(name, Stage("finetune", teacher)) for name, teacher in {NONE: "", **TEACHERS}.items()),
        Row(SMOOTH, SOFT, options=SMOOTHING),
    ],
    "dealt": [Row("dealt at random", Stage("finetune", "dealt"))],  # as soft as the ensemble's labels, and blind
    "moved-dealt": [Row("2, dealt at random", Stage("finetune", "dealt", world=MOVED))],
    "softness": [  # λ₁ and the teacher's temperature, one at a time, beside the paper's 1 and 0.05
        Row("2", SOFT, {"setting": "paper", "at": 1.0}),
        *(Row("2", SOFT, {"setting": "weight", "at": at}, weighted(SOFT.recipe, distillation=at)) for at in (0.3, 3.0)),
        *(Row("2", SOFT, {"setting": "teacher tau", "at": at}, {"teacher_tau": at}) for at in (0.0125, 0.1, 0.4)),
    ],
    "ambiguity": [  # the first encoder's model teaches its own successor: an ensemble would need all in each world
        Row(name, replace(stage, world=world), {"world": world})
        for world in AMBIGUOUS
        for name, stage in {
            "1, finetuned": SYSTEMS["1, finetuned"],
            "2": Stage("finetune", MAIN),
            "2, again": Stage("refinetune", MAIN),
            "2, topics": Stage("refinetune", MAIN, topics="generic"),
        }.items()
    ],
    "dose": [  # the same model as a teacher, and the truth, over binary labels: what ambiguity adds to either
        Row(name, Stage("finetune", teacher, world=world), {"world": world})
        for world in DOSED
        for name, teacher in {NONE: "", "soft labels": MAIN, "truth": "truth"}.items()
    ],
    "moved": [  # pretrained on other sounds: what each step adds over its control, and the truth as a ceiling
        *(Row(name, replace(SYSTEMS[name], world=MOVED)) for name in SYSTEMS),
        Row("truth", Stage("finetune", "truth", world=MOVED)),
        Row("2, random teacher", Stage("finetune", "blind", world=MOVED)),
        *(
            Row(f"2, λ₁ = {at:g}", replace(SOFT, world=MOVED), {}, weighted(SOFT.recipe, distillation=at))
            for at in (0.1, 0.3)
        ),
        *(
            Row(f"{kind} × {at:g}", replace(AGAIN, topics=kind, world=MOVED), {}, weighted(TOPICAL, clusters=at))
            for kind in TOPIC_SOURCES
            for at in (0.05, 0.5, 5.0)
        ),
    ],
    "augmentation": [
        Row("none", SOFT),
        Row("all", LAST),
        *(Row(part, replace(SOFT, augment=part)) for part in ("back-translation", "deletion", "synonyms", "mix")),
        Row(WITHOUT, Stage("finetune", augment="all")),
    ],
    "topics": [  # how many topics, and what they are; beside them the same passes without any
        Row("no topics", AGAIN),
        *(Row(kind, replace(AGAIN, topics=kind)) for kind in ("finetuned", *TOPIC_SOURCES)),
        *(Row(f"generic, {count}", replace(AGAIN, topics=f"generic:{count}")) for count in (6, 48)),
    ],
}


def experiment(context: Context, name: str, seeds: Iterable[int], rows: Iterable[Row] = ()) -> Experiment:
    """An experiment of ROWS, or of others; all are scored alike on the same test clips, whatever they learnt from."""
    trials = [context.trial(row.system, row.stage, row.where, **row.options) for row in rows or ROWS[name]]
    return Experiment(name, tuple(trials), tuple(seeds), evaluations=("annotations",), long=True)


def search(context: Context, kind: str, encoders: Iterable[str], seeds: Iterable[int]) -> Experiment:
    """The rates of a kind of stage for every system of it, on validation; kind: "pretrain" or "finetune"."""
    rows = [
        Row(f"{label}, {encoder}", replace(stage, encoder=encoder), {"lr": lr}, {"lr": lr})
        for label, stage in {stage.label: stage for stage in SYSTEMS.values() if stage.kind == kind}.items()
        for encoder in encoders
        for lr in GRID[kind]
    ]
    return experiment(context, f"search-{kind}", seeds, rows)


def against(of: Experiment, baseline: str) -> list[tuple[str, str]]:
    """Every system of an experiment with the same baseline."""
    return [(trial.system, baseline) for trial in of.trials if trial.system != baseline]


# ---------------------------------------------------------------- beside the paper, and claims


def table_1() -> pd.DataFrame:
    """Table 1 with our stages: columns system, distillation, augmentation, clusters (as the paper has them), here.

    >>> table_1().iloc[4].tolist()
    ['5', 'yes', 'yes', 'BERTopic', 'refinetune, soft labels, augmentation, generic topics']
    """
    paper = paper_table("distill_cluster", 1)
    paper = paper.assign(printed=paper["note"].str.extract("printed=(.*)")[0].replace({"X": "no", "O": "yes"}))
    printed = paper.pivot(index="system", columns="metric", values="printed").T
    rows = []
    for name in sorted(SYSTEMS, key=lambda name: "," in name):  # the paper's first
        stage, theirs = SYSTEMS[name], printed.get(f"SID {name}", {})
        parts = ("soft labels" * bool(stage.teacher), "augmentation" * bool(stage.augment))
        here = [stage.kind, *filter(None, parts), *([f"{stage.topics} topics"] if stage.topics else [])]
        switches = [theirs.get(metric, "–") for metric in ("distillation", "augmentation", "cluster_labels")]
        rows.append((name, *switches, ", ".join(here)))
    return pd.DataFrame(rows, columns=["system", "distillation", "augmentation", "clusters", "here"])


def printed(system: str, encoder: str, metric: str) -> float:
    """What Table 2 prints, in %: of a system of Table 1 by an encoder of ours, or of an ensemble; NaN where it prints
    none.

    >>> printed("2", "yamnet", "mAP@16 multiple"), printed("E1", "all", "R@1 single")
    (46.62, 28.33)
    """
    name, annotation = metric.split(" ")
    label = f"SID {system} {STANDS_FOR[encoder]}" if encoder in STANDS_FOR else system
    table = paper_table("distill_cluster", 2)
    rows = table[(table["system"] == label) & (table["metric"] == name)]
    return float(rows.loc[rows["note"].str.startswith(f"annotation={annotation};"), "value"].mean())


def table_2(found: pd.DataFrame) -> pd.DataFrame:
    """`levels` as Table 2 prints them, in %: a row a system and encoder, ours above the paper's."""
    rows = []
    for row in shown(found).rename(columns={"ears": "hears"}).to_dict("records"):
        theirs = {metric: printed(row["system"], row["hears"], metric) for metric in TABLE_2}
        rows.append(row)
        if np.isfinite(list(theirs.values())).any():
            head = {"system": f"paper: {row['system']}", "hears": STANDS_FOR.get(row["hears"], "")}
            rows.append(head | {metric: "–" if np.isnan(value) else f"{value:.1f}" for metric, value in theirs.items()})
    return pd.DataFrame(rows)


def validated(scores: Scores, trial: Trial) -> float:
    """Validation R@1 of a trial's best epoch, the mean over seeds: what is compared on the test clips is not picked by
    them.
    """
    history = scores.history.assign(system=scores.history["system"].astype(str))  # a file gives "2" back as a number
    seeds = scores.seeds(trial.system, trial.where)
    return float(np.mean([scores.rows(history, trial, seed)["R@1"].max() for seed in seeds]))


def best_over_worst(name: str, kept: Callable[[Trial], bool], found: Experiments) -> Difference:
    """The best of some trials over the worst, both by validation."""
    scores = found[name]
    trials = [trial for trial in scores.experiment.trials if kept(trial)]
    best, *_, worst = sorted(trials, key=lambda trial: validated(scores, trial), reverse=True)
    return scores.contrast(best.system, worst.system, MAIN_SCORE, best.where, baseline_where=worst.where)


def mixed_gains(found: Experiments) -> Difference:
    """What clusters give with the encoder where they give most on validation, less where they give least."""
    scores, (clusters, control) = found["systems-again"], FAIR[2]

    def lift(trial: Trial) -> float:
        return validated(scores, trial) - validated(scores, scores.trial(control, trial.where))

    trials = sorted((trial for trial in scores.experiment.trials if trial.system == clusters), key=lift, reverse=True)
    values = [[scores.values(name, MAIN_SCORE, each.where) for name in FAIR[2]] for each in (trials[0], trials[-1])]
    return difference(*(ours - theirs for ours, theirs in values))


def slope(system: str, found: Experiments) -> Difference:
    """What a teacher gains over none, more in a world of single sounds alone than in one without any: the slope of a
    line by least squares through the gains of all doses. It is their sum with weights, so that the seeds and clips of
    all worlds give its interval; which clip of a world goes with which of another is of no account.
    """
    doses = np.array([*DOSED.values()]) - np.mean([*DOSED.values()])
    gains = [
        found["dose"].values(system, MAIN_SCORE, where) - found["dose"].values(NONE, MAIN_SCORE, where)
        for where in ({"world": world} for world in DOSED)
    ]
    return difference(np.tensordot(doses / (doses**2).sum(), np.stack(gains), axes=1))


MEASURES: Mapping[str, Measure] = {
    "ambiguity-slope": Measure(("dose",), partial(slope, "soft labels")),
    "ambiguity-slope-truth": Measure(("dose",), partial(slope, "truth")),
    "teacher-temperature": Measure(
        ("softness",), partial(best_over_worst, "softness", lambda trial: trial.where["setting"] != "weight")
    ),
    "number-of-topics": Measure(
        ("topics",), partial(best_over_worst, "topics", lambda trial: trial.system.startswith("generic"))
    ),
    "cluster-gain-by-ears": Measure(("systems-again",), mixed_gains),
}

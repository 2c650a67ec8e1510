"""Tables 1 and 2 of the paper beside ours, ranks, and what judges the claims that no single contrast does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab.comparisons import LEVEL, over, shown
from pullpush.lab.experiments import Trial
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference
from pullpush.studies.distill.stages import MAIN, STANDS_FOR, SYSTEMS

PAPER = "distill_cluster"
MAIN_SCORE = "mAP@16 multiple"
TABLE_2 = ("mAP@10 multiple", "mAP@16 multiple", "mAP@10 single", "R@1 single", "R@5 single", "R@10 single")
# What figures write of encoders and scores.
NAMES: Mapping[str, str] = {
    **{encoder: f"{encoder} (for {theirs})" for encoder, theirs in STANDS_FOR.items()},
    **{metric: f"{metric.split(' ')[0]}, {metric.split(' ')[1]} annotation" for metric in TABLE_2},
}
SWITCHES = {"distillation": "distillation", "augmentation": "augmentation", "clusters": "cluster_labels"}
WORDS = {"X": "no", "O": "yes"}  # crosses and circles of Table 1
CLUSTERS = ("4", "3, again")


def level(values: Array, **head: object) -> dict[str, object]:
    """A row of a table of levels: what stands in front, and value, low, high, seeds and clips of `(seeds, clips)`."""
    one = difference(values)
    return {**head, **{name: getattr(one, name) for name in LEVEL}}


def table_1() -> pd.DataFrame:
    """Table 1 with our stages: columns system, distillation, augmentation, clusters (as the paper has them), here.

    >>> table_1().iloc[4].tolist()
    ['5', 'yes', 'yes', 'BERTopic', 'refinetune, soft labels, augmentation, generic topics']
    """
    paper = paper_table(PAPER, 1)
    paper = paper.assign(printed=paper["note"].str.extract("printed=(.*)")[0].replace(WORDS))
    printed = paper.pivot(index="system", columns="metric", values="printed")
    rows = []
    for name in sorted(SYSTEMS, key=lambda name: "," in name):  # the paper's first
        stage, theirs = SYSTEMS[name], printed.T.get(f"SID {name}", {})
        parts = ("soft labels" * bool(stage.teacher), "augmentation" * bool(stage.augment))
        here = [stage.kind, *filter(None, parts), *([f"{stage.topics} topics"] if stage.topics else [])]
        switches = {title: theirs.get(metric, "–") for title, metric in SWITCHES.items()}
        rows.append({"system": name, **switches, "here": ", ".join(here)})
    return pd.DataFrame(rows)


def printed(system: str, encoder: str, metric: str) -> float:
    """What Table 2 prints, in %: of a system of Table 1 by an encoder of ours, or of an ensemble; NaN where it prints
    none.

    >>> printed("2", "yamnet", "mAP@16 multiple"), printed("E1", "all", "R@1 single")
    (46.62, 28.33)
    """
    name, annotation = metric.split(" ")
    label = f"SID {system} {STANDS_FOR[encoder]}" if encoder in STANDS_FOR else system
    table = paper_table(PAPER, 2)
    noted = table["note"].astype(str).str.split(";").map(lambda notes: f"annotation={annotation}" in notes)
    chosen = (table["system"] == label) & (table["metric"] == name) & noted
    return float(table.loc[chosen, "value"].astype(float).mean()) if chosen.any() else float("nan")


def table_2(found: pd.DataFrame) -> pd.DataFrame:
    """Levels as Table 2 prints them, in %: a row a system and encoder, ours above the paper's.

    found: columns system, ears, metric, value, low, high; see `levels`.
    """
    rows = []
    for row in shown(found).rename(columns={"ears": "hears"}).to_dict("records"):
        theirs = {metric: printed(row["system"], row["hears"], metric) for metric in TABLE_2}
        rows.append(row)
        if np.isfinite(list(theirs.values())).any():
            head = {"system": f"paper: {row['system']}", "hears": STANDS_FOR.get(row["hears"], "")}
            rows.append(head | {metric: "–" if np.isnan(value) else f"{value:.1f}" for metric, value in theirs.items()})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- measures


def validated(scores: Scores, trial: Trial) -> float:
    """Validation R@1 of a trial's best epoch, the mean over seeds: what is compared on the test clips is not picked by
    them.
    """
    history = scores.history.assign(system=scores.history["system"].astype(str))  # a file gives "2" back as a number
    seeds = scores.seeds(trial.system, trial.where)
    return float(np.mean([scores.rows(history, trial, seed)["R@1"].max() for seed in seeds]))


def best_over_worst(scores: Scores, trials: Sequence[Trial]) -> Difference:
    """The best of some trials over the worst, both by validation."""
    best, *_, worst = sorted(trials, key=lambda trial: validated(scores, trial), reverse=True)
    return scores.contrast(best.system, worst.system, MAIN_SCORE, best.where, baseline_where=worst.where)


def by_temperature(found: Experiments) -> Difference:
    """The best of the teacher's temperatures over the worst."""
    scores = found["softness"]
    return best_over_worst(scores, [each for each in scores.experiment.trials if each.where["setting"] != "weight"])


def by_number_of_topics(found: Experiments) -> Difference:
    """The best number of topics over the worst."""
    scores = found["topics"]
    return best_over_worst(scores, [each for each in scores.experiment.trials if each.system.startswith("generic")])


def generalises(found: Experiments) -> Difference:
    """What soft labels give under multiple annotation, less what they give under single, mAP@10."""
    scores, pair, where = found["systems"], ("2", "1, finetuned"), {"ears": MAIN}
    return difference(*(over(scores, pair, f"mAP@10 {kind}", where) for kind in ("multiple", "single")))


def mixed_gains(found: Experiments) -> Difference:
    """What clusters give with the encoder where they give most on validation, less where they give least."""
    scores = found["systems"]

    def lift(trial: Trial) -> float:
        return validated(scores, trial) - validated(scores, scores.trial(CLUSTERS[1], trial.where))

    trials = [trial for trial in scores.experiment.trials if trial.system == CLUSTERS[0]]
    ends: tuple[Any, Any] = max(trials, key=lift), min(trials, key=lift)
    return difference(*(over(scores, CLUSTERS, MAIN_SCORE, trial.where) for trial in ends))


def where_ambiguous(found: Experiments) -> Difference:
    """What topics give on top of soft labels in the world in which a caption fits most clips."""
    return difference(over(found["ambiguity"], ("2, topics", "2, again"), MAIN_SCORE, {"world": "single"}))


MEASURES: Mapping[str, Measure] = {
    "distillation-by-annotation": Measure(("systems",), generalises),
    "teacher-temperature": Measure(("softness",), by_temperature),
    "number-of-topics": Measure(("topics",), by_number_of_topics),
    "cluster-gain-by-ears": Measure(("systems",), mixed_gains),
    "clusters-where-ambiguous": Measure(("ambiguity",), where_ambiguous),
}

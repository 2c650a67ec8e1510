"""Learning rates of the stages, as the searches of the lab chose them on validation, and the number of topics.

A constant here and not a result that a cell hands on: a run's name holds what it was trained by, so that the rates of
an early stage decide the names of all later ones. The lab searches again and says if another rate is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pullpush.studies.distill.stages import MAIN, Stage

GRID: Mapping[str, tuple[float, ...]] = {
    "pretrain": (3e-4, 1e-3, 3e-3),
    "finetune": (1e-4, 3e-4, 1e-3),
}
TOPICS = 24  # to which topics are merged, where their number is not what is varied
WEIGHT = 0.05  # λ₂
# (stage, ears) → rate; later stages are searched with the first ears alone.
CHOSEN: Mapping[tuple[str, str], float] = {
    ("pretrain", "yamnet"): 1e-3,
    ("pretrain", "reconstruction"): 3e-3,
    ("pretrain", "prediction"): 3e-3,
    ("finetune", "yamnet"): 3e-4,
    ("finetune, soft labels", "yamnet"): 3e-4,
    ("finetune, soft labels, augmented", "yamnet"): 1e-4,
    ("finetune, augmented", "yamnet"): 1e-4,  # as with soft labels: no system of Table 1, and not searched
}
DEFAULT = 1e-3


def of_stage(stage: Stage, ears: str) -> dict[str, Any]:
    """The rate of a stage, as overrides of its recipe.

    >>> of_stage(Stage("finetune"), "prediction") == of_stage(Stage("finetune"), "yamnet")
    True
    """
    name = label(stage)
    return {"lr": CHOSEN.get((name, ears), CHOSEN.get((name, MAIN), DEFAULT))}


def label(stage: Stage) -> str:
    """What the searches call a stage: its kind, and whether it has soft labels and augmentation. Other teachers and
    parts of the augmentation share a rate, and so does what is finetuned once more, with topics or without.
    """
    kind = "pretrain" if stage.kind == "pretrain" else "finetune"
    parts = ("soft labels" * bool(stage.teacher), "augmented" * bool(stage.augment))
    return ", ".join([kind, *filter(None, parts)])


def beside(points: pd.DataFrame) -> pd.DataFrame:
    """The points of the searches, with `used`: whether a system was trained with this rate.

    points: columns system ("finetune, soft labels, yamnet"), lr …; see `tuning.points_table`.
    """
    used = []
    for row in points.to_dict("records"):
        name, _, ears = row["system"].rpartition(", ")
        used.append(row["lr"] == CHOSEN.get((name, ears), DEFAULT))
    return points.assign(used=used)

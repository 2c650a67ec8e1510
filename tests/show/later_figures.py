"""The figures of chapters 6 and 7, each drawn from a small table that is made up."""

import numpy as np
import pandas as pd

from pullpush.show.intervals import intervals
from pullpush.studies import term_forces
from pullpush.studies.distill import plots as distill
from pullpush.studies.distill.science import LEVELS
from pullpush.studies.together import plots as together, science
from pullpush.studies.together.experiments import HALF

SPANS = {"value": 0.4, "low": 0.3, "high": 0.5, "seeds": 3, "clips": 40}
FACTORS = ("sigmoid", "SVR", "soft labels")
SQUARE = science.Design(FACTORS)


def crossed(**columns: tuple[object, ...]) -> pd.DataFrame:
    """A row for every combination of what columns hold, all with the same interval."""
    return pd.MultiIndex.from_product(columns.values(), names=columns).to_frame(index=False).assign(**SPANS)


# ---------------------------------------------------------------- chapter 6


def by_system() -> pd.DataFrame:
    return crossed(ears=("yamnet", "prediction", "nobody's"), system=("teachers", "2, again"), metric=("mAP@16", "R@1"))


def gained() -> pd.DataFrame:
    """One of the pairs was not trained with the second encoder."""
    return crossed(comparison=("soft over 1", "3 over 2"), ears=("yamnet", "prediction")).head(3)


def judged() -> pd.DataFrame:
    return crossed(teacher=("binary labels", "ensemble"), metric=("rank correlation", "share on clips that fit"))[1:]


def pushes() -> pd.DataFrame:
    return crossed(label=tuple(distill.LABELS), level=LEVELS).rename(columns={"value": "weight"})


MAPPED = np.random.default_rng(0).random((30, 2)).astype(np.float32)
TOPIC = np.arange(30) % 3  # the last has no name: grey

# ---------------------------------------------------------------- chapter 7


def responses() -> np.ndarray:
    """Eight runs, two seeds, five clips; the first factor adds by far the most."""
    noise = np.random.default_rng(0).normal(0, 0.01, (8, 2, 5))
    return noise + 0.2 * (SQUARE.contrast(FACTORS[0]) > 0)[:, None, None]


def contrasts() -> pd.DataFrame:
    quantile = np.linspace(0.1, 2, 7)
    return pd.DataFrame(
        {"effect": [*"abcdef", "sigmoid"], "factors": [2] * 6 + [1], "size": 0.01 * quantile**3}
    ).assign(quantile=quantile)


def front() -> pd.DataFrame:
    """Three runs on the front, one below it, and one that was predicted."""
    rows = [("InfoNCE", 1, 0.2, True, True), ("SVR", 2, 0.3, True, True), ("sigmoid", 3, 0.4, True, True)]
    rows += [("cycles", 2.5, 0.1, True, False), ("SVR + cycles", 2.2, 0.35, False, False)]
    table = pd.DataFrame(rows, columns=["system", "time", "value", "measured", "front"])
    return table.assign(low=table["value"] - 0.02, high=table["value"] + 0.02)


def forces() -> pd.DataFrame:
    rows = [
        (term, "whole", side, n, 10.0 * n, 0.1 * n, -0.5)
        for term in ("kcl", "distillation")
        for side in ("text", "clip")
        for n in (1, 2, 3)
    ]
    return pd.DataFrame(rows, columns=["term", "part", "side", "sample", "along", "across", "from_mean"])


DRAWN = {
    "fitting": lambda: distill.fitting({"test": [0, 0, 1, 99], "all": [2, 3]}, {2: 0.1, 4: 0.2, 8: 0.3}, trained=2),
    "pushes": lambda: distill.pushes(pushes()),
    "intervals": lambda: intervals(by_system(), colours="ears", panels="metric", xlabel="%", names={"R@1": "recall"}),
    "intervals of gains": lambda: intervals(
        gained(), rows="comparison", colours="ears", xlabel="gain (points)", names={"yamnet": "yamnet (for PaSST)"}
    ),
    "intervals of one kind": lambda: intervals(judged(), rows="teacher", panels="metric", xlabel="share", scale=1),
    "topic_map": lambda: distill.topic_map(MAPPED, TOPIC, ["bell, ring", "frog, croak"]),
    "by_members": lambda: distill.by_members(crossed(members=(1, 2, 3, 4), seed=(0, 1)), {"E1": 0.45, "equal": 0.42}),
    "design_figure": lambda: together.design_figure(science.Design(*HALF)),
    "interaction_matrix": lambda: together.interaction_matrix(
        science.effects(SQUARE, responses()), FACTORS, [FACTORS[0]]
    ),
    "half_normal_plot": lambda: together.half_normal_plot(contrasts(), 0.01, 0.05),
    "pareto_front": lambda: together.pareto_front(front(), marked={"InfoNCE": "InfoNCE", "SVR + cycles": "the recipe"}),
    "forces_by_term": lambda: term_forces.forces_by_term(forces()),
}

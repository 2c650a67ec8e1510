"""A run on the small world, spaces of which everything is known, and scores of runs that nobody trained."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from embeddings import sphere
from torch.nn import functional as F

from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.studies.consistency.bound import tiny_model
from pullpush.studies.consistency.space import Space
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan


@pytest.fixture(scope="session")
def toy() -> Callable[..., Space]:
    """A function that makes a space: texts at a clip's place, with noise."""
    return _space


def _space(clips: int = 12, captions: int = 2, languages: int = 3, noise: float = 0.3) -> Space:
    audio = sphere(clips, 6)
    texts = audio[:, None, None] + noise * sphere(clips, captions, languages, 6, seed=1)
    return Space(audio, F.normalize(texts, dim=-1))


@pytest.fixture(scope="module")
def heard(home, world):
    base = Plan(world, recipe("infonce", text="hashed", dim=8, epochs=1, batch_size=8)).train()
    return encoded(world, base)


@pytest.fixture(scope="module")
def run(heard):
    plan = recipe("kcl", **on_features(heard), text="hashed", dim=8, epochs=1, batch_size=8)
    return Plan(heard, plan).train()


@pytest.fixture(scope="module")
def tiny(heard, run):
    return tiny_model(heard, run.model.text, clips=8, features=4, dim=3)


@pytest.fixture(scope="session")
def scores_of() -> Callable[..., Scores]:
    """A function that makes scores of systems with given levels."""
    return _scores


def _scores(
    systems: dict[str, float], *, languages: tuple[str, ...] = ("eng", "fra", "deu"), clips: int = 12, **trials: Any
) -> Scores:
    """Scores of runs that nobody trained: each clip's R@1 is its system's level, a seed's and a clip's own part."""
    points = [
        Trial(name, name, where={key: value}) for key, values in trials.items() for value in values for name in systems
    ]
    experiment = Experiment(
        "made", tuple(points or [Trial(name, name) for name in systems]), (0, 1), languages=languages
    )
    rng, values, rows = np.random.default_rng(0), {}, []
    part = 0.01 * rng.standard_normal((clips, len(languages)))
    for trial, seed in experiment.cells:
        level = systems[trial.system] + 0.01 * seed + 0.001 * rng.standard_normal((clips, len(languages)))
        values[str(trial), seed] = {"R@1": level + part, "MRV": np.arange(clips, dtype=float), "T2A R@1": level}
        values[str(trial), seed] |= {"log rank variance": level[:, 0], "mean rank": level[:, 0]}
        head = {"system": trial.system, **trial.where, "seed": seed}
        rows += [{**head, "epoch": epoch, "step": 10 * epoch, "R@1": 0.1 * epoch} for epoch in (1, 2)]
    return Scores(experiment, values, pd.DataFrame(rows), pd.DataFrame(), Stamp("now", "", (0, 1), 0.0, {}))

"""What the tests of chapter 2 share: directions, scores of a tiny world, and scores whose answer is known."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from pullpush.lab import compute, material
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import stamp
from pullpush.lab.scores import Scores
from pullpush.training.diagnostics import Diagnostics

SYSTEMS = {
    "infonce": ("infonce", {}),
    "twice": ("infonce+bi-static-svr", {"radius": 0.0, "learnable": False, "beta": 0.0}),
    "infonce+bi-dynamic-svr": ("infonce+bi-dynamic-svr", {}),
}


@pytest.fixture(scope="module")
def svr_scores(book):
    watch = Diagnostics(every=1, tau=0.07)
    return compute.run(material.of(book), Experiment.of("scores", SYSTEMS, seeds=(0, 1), watch=watch))


@pytest.fixture(scope="session")
def scores_of() -> Callable[[dict[tuple[str, str], list[float]]], Scores]:
    """Scores of (protocol, system) → mean R@1 of each seed, with the same noise of clips in all, and a drift that is
    the less the later its system stands.
    """
    noise = np.random.default_rng(0).normal(0, 1e-3, 20)

    def scores(values: dict[tuple[str, str], list[float]]) -> Scores:
        trials = [
            Trial(system, "infonce", {}, {"protocol": protocol}, data=protocol, seeds=tuple(range(len(means))))
            for (protocol, system), means in values.items()
        ]
        cells = [(t, n, seed, m) for n, t in enumerate(trials) for seed, m in enumerate(list(values.values())[n])]
        clips = {(str(t), seed): {"R@1": mean + noise - noise.mean()} for t, _, seed, mean in cells}
        drifts = ("gradient_drift_pull", "gradient_drift_tangent", "update_drift")
        rows = [
            {"system": t.system, **t.where, "seed": seed, "epoch": epoch, "step": 10 * epoch, "R@1": mean * epoch / 4}
            | dict.fromkeys(drifts, float(-number) if epoch > 2 else 0.0)
            for t, number, seed, mean in cells
            for epoch in range(1, 5)
        ]
        table = pd.DataFrame(rows)
        experiment = Experiment("effects", tuple(trials), (0, 1), long=True)
        return Scores(experiment, clips, table, table, stamp({}, seeds=(0,), seconds=0))

    return scores

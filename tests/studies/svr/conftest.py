"""What the tests of studies share: scores of a tiny world."""

from __future__ import annotations

import pytest

from pullpush.lab import compute, material
from pullpush.lab.experiments import Experiment
from pullpush.training.diagnostics import Diagnostics

SYSTEMS = {
    "infonce": ("infonce", {}),
    "twice": ("infonce+bi-static-svr", {"radius": 0.0, "learnable": False, "beta": 0.0}),
    "infonce+bi-dynamic-svr": ("infonce+bi-dynamic-svr", {}),
}
BASE, TWICE, SVR = SYSTEMS


@pytest.fixture(scope="module")
def svr_ground(book):
    return material.of(book)


@pytest.fixture(scope="module")
def svr_scores(svr_ground):
    watch = Diagnostics(every=1, tau=0.07)
    evaluations = ("retrieval", "closeness", "zero-shot")
    return compute.run(svr_ground, Experiment.of("scores", SYSTEMS, seeds=(0, 1), watch=watch, evaluations=evaluations))


@pytest.fixture(scope="module")
def svr_varied(svr_ground):
    two = {name: SYSTEMS[name] for name in (BASE, SVR)}
    rates = {"lr": {1e-3: {"lr": 1e-3}, 2e-3: {"lr": 2e-3}}}
    alone = {"alpha": {0.5: {"alpha": 0.5}}}
    both = Experiment.of("settings", two, settings=rates, seeds=(0, 1))
    return compute.run(svr_ground, both + Experiment.of("settings", {SVR: SYSTEMS[SVR]}, settings=alone, seeds=(0, 1)))

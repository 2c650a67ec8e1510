"""Chapter 6's lab: claims ask for systems that there are, and measures find what was planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from pullpush.lab import claims, session
from pullpush.lab.comparisons import levels as levels_of
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import judge_measures
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS
from pullpush.metrics.ensembles import combine, score
from pullpush.studies.distill import ensembles, experiments, tables
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.stages import ENCODERS, GRID, SYSTEMS

LAB = "06-distill-cluster-lab"
SEEDS = (0, 1, 2)
METRIC = [score.name for score in METRICS["annotations"].scores]


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return Grounds(session.start(LAB, profile="smoke", out=tmp_path_factory.mktemp("out")))


@pytest.fixture(scope="module")
def declared(ground):
    every = {"seeds": SEEDS}
    made = (
        experiments.systems(ground, **every),
        experiments.teachers(ground, **every),
        experiments.softness(ground, **every),
        experiments.ambiguity(ground, **every),
        experiments.augmentation(ground, **every),
        experiments.topics(ground, **every),
    )
    return {each.name: each for each in made}


def scores(experiment, level, *, clips=60, noise=0.01):
    """Scores that nobody trained: level(trial, metric), and noise of each clip and run; validation follows mAP@16."""
    rng = np.random.default_rng(0)
    found = {
        (str(trial), seed): {name: level(trial, name) + rng.normal(0, noise, clips) for name in METRIC}
        for trial, seed in experiment.cells
    }
    history = pd.DataFrame(
        [
            {"system": trial.system, **trial.where, "seed": seed, "epoch": epoch, "step": epoch}
            | {"R@1": level(trial, "mAP@16 multiple")}
            for trial, seed in experiment.cells
            for epoch in (1, 2)
        ]
    )
    return Scores(experiment, found, history, history, None)  # pyrefly: ignore[bad-argument-type]


STEPS = {"1": 0.3, "1, finetuned": 0.32, "1, again": 0.33, "2": 0.4, "2, again": 0.41, "3": 0.42, "3, again": 0.43}
STEPS |= {"4": 0.46, "5": 0.48}


@pytest.fixture(scope="module")
def found(declared):
    def of_systems(trial, metric):
        heard = {"yamnet": 0.1, "reconstruction": 0.05, "prediction": 0.0}[trial.where["ears"]]
        fewer = 0.02 if (trial.system, trial.where["ears"]) == ("4", "prediction") else 0.0
        return STEPS[trial.system] + heard - fewer - 0.05 * ("single" in metric and trial.system == "2")

    levels = {
        "systems": of_systems,
        "teachers": lambda trial, metric: 0.4 + 0.05 * (trial.system == "ensemble"),
        "softness": lambda trial, metric: 0.4 - 0.1 * (trial.where["at"] == 0.4),
        "ambiguity": lambda trial, metric: 0.4 + 0.1 * (trial.where["world"] == "single") * ("topics" in trial.system),
        "augmentation": lambda trial, metric: 0.4 + 0.03 * (trial.system == "mix"),
        "topics": lambda trial, metric: 0.4 + 0.02 * (trial.system == "generic, 48"),
    }
    return {name: scores(declared[name], level) for name, level in levels.items()}


def test_systems_called_by_numbers_are_found_in_what_was_kept(found):
    kept = found["softness"].history.assign(system=lambda table: table["system"].astype(int))  # as a file gives it
    scores = replace(found["softness"], history=kept)
    assert [tables.validated(scores, trial) for trial in scores.experiment.trials] == pytest.approx([0.4] * 5 + [0.3])


def test_planted_gains_are_found(found):
    values = {name: measure.of(found).value for name, measure in tables.MEASURES.items()}
    assert values == pytest.approx(
        {
            "distillation-by-annotation": 0.05,
            "teacher-temperature": 0.1,
            "number-of-topics": 0.02,
            "cluster-gain-by-ears": 0.02,
            "clusters-where-ambiguous": 0.1,
        },
        abs=0.006,
    )


def test_every_claim_of_the_lab_is_judged(found):
    ledger = Ledger(LAB)
    for name in ("systems", "teachers", "augmentation"):
        ledger.judge_scores(found[name])
    judge_measures(ledger, tables.MEASURES, found)
    left = {claim.judged["measure"] for claim in ledger.open}
    assert left == {
        "ensemble-order",
        "members-without-weight",
        "first-ears-weigh-most",
        "several-ears",
        "ensemble-over-single",
        "ensemble-single",
        "generic-topics",
        "audio-follows-topics",
    }, "those that need models"
    table = ledger.table().set_index("id")
    assert table.loc["distill_cluster-t2-distill-passt", "value"] == pytest.approx(8, abs=0.6)
    assert table.loc["distill_cluster-t2-distill-passt", "verdict"] == "holds"
    assert table.loc["distill_cluster-t2-passt-best", "value"] == pytest.approx(5, abs=0.6)
    assert not [row["reason"] for row in ledger.table().to_dict("records") if "not in this" in row["reason"]]


def test_claims_of_the_paper_are_all_judged_or_have_a_true_reason():
    of_paper = claims.load("distill_cluster")
    assert not [claim.id for claim in of_paper if claim.reason and "not written" in claim.reason["why"]]


def test_searches_have_the_same_grid_for_every_system_of_a_stage(ground):
    for kind in GRID:
        search = experiments.search(ground, kind, seeds=(1000,))
        by_system = {}
        for trial in search.trials:
            by_system.setdefault(trial.system, []).append(trial.overrides["lr"])
        assert {tuple(values) for values in by_system.values()} == {GRID[kind]}


def test_experiments_share_what_they_can(ground, declared):
    """The ensemble's student of five experiments is one run."""
    view = SYSTEMS["2"].name
    for name in ("systems", "teachers", "softness", "augmentation"):
        same = [t for t in declared[name].trials if t.data == view and t.recipe == "infonce+distillation"]
        plain = [t for t in same if t.overrides == ground.system(SYSTEMS["2"])[1]]
        assert len(plain) == 1, name


def test_table_2_stands_beside_the_paper(found):
    levels = levels_of(found["systems"], tables.TABLE_2)
    shown = tables.table_2(levels).set_index(["system", "hears"])
    assert shown.loc[("paper: 2", "PaSST"), "mAP@16 multiple"] == "46.6"
    assert ("paper: 1, finetuned", "PaSST") not in shown.index, "which the paper has not"
    ours = float(shown.loc[("2", "yamnet"), "mAP@16 multiple"])
    assert ours == pytest.approx(50, abs=0.6)


# ---------------------------------------------------------------- ensembles


@pytest.fixture(scope="module")
def matrices():
    """Two systems × two ears that know different halves of the queries, and one system that knows nothing."""
    n = 40
    eye, generator = torch.eye(n), torch.Generator().manual_seed(0)
    parts = []
    for system in range(2):
        rows = []
        for ears in range(2):
            known = (torch.arange(n) % 2 == ears).float()[:, None] * (system == 0)
            rows.append(0.9 * known * eye + torch.rand(n, n, generator=generator))
        parts.append(torch.stack(rows))
    both = torch.stack(parts)
    return ensembles.Similarities(("2", "3"), ("yamnet", "prediction"), both, both, eye, eye)


def test_members_that_complement_each_other_get_the_weight(matrices):
    found = ensembles.sought(matrices, step=0.5)
    for name in ("E1", "E3", "learned"):
        assert found.weights[name].sum() == pytest.approx(1)
        knows, knows_not = found.weights[name]
        assert knows.sum() > knows_not.sum(), name
    best, alone = (
        ensembles.values([matrices], [found.weights[name]])["R@1 single"].mean() for name in ("E1", "best member")
    )
    assert best > alone + 0.1


def test_runners_up_have_other_weights_and_no_better_score(matrices):
    found = ensembles.sought(matrices, step=0.5)
    members = matrices.valid.flatten(0, 1)
    first, second = (
        score(combine(members, found.weights[name].flatten()), matrices.fits_valid, **ensembles.PROTOCOL)
        for name in ("E1", "E2")
    )
    assert second <= first
    assert not torch.equal(found.weights["E2"], found.weights["E1"])


def test_equal_members_are_the_mean_of_their_matrices(matrices):
    members = [("2", "yamnet"), ("2", "prediction")]
    ours = ensembles.values([matrices], [matrices.only(members)])["R@1 single"]
    mean = matrices.test[0].mean(dim=0)
    expected = (mean.argmax(dim=1) == torch.arange(40)).double().numpy()
    assert np.array_equal(ours[0], expected)
    sizes = ensembles.by_size([matrices])
    assert sizes["members"].tolist() == [1, 2, 3, 4]


def test_every_ears_stand_for_a_model_of_the_paper():
    assert {tables.printed("3", ears, "R@1 single") for ears in ENCODERS} == {27.2, 27.52, 25.51}

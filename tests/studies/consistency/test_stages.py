"""Two starts: what a stage's runs go on from, and which rate of them is compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pullpush.errors import UnknownNameError
from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.studies.consistency import comparisons, experiments
from pullpush.studies.consistency.grounds import WORDS, Grounds

BEST = {"ml-clap": 0.1, "kcl": 0.01}  # the rate that validation prefers


@pytest.fixture
def ground(home, tmp_path):
    book = session.start("03-consistency-lab", profile="smoke", out=tmp_path)
    return Grounds(material.of(book, "scenes"))


def staged(level=0.1):
    """Scores at two rates: the better one on validation is the worse one on the test."""
    trials = [
        Trial(system, system, {"lr": lr}, {"telling": telling, "start": start, "lr": lr}, seeds=seeds)
        for telling, seeds in (("aligned", (0, 1)), ("retold", (0,)))
        for start in ("ml-clap", "nothing")
        for lr in (0.01, 0.1)
        for system in BEST
    ]
    experiment = Experiment("starts", tuple(trials), (0, 1), languages=("eng", "fra"))
    rng, values, rows = np.random.default_rng(0), {}, []
    for trial, seed in experiment.cells:
        good = BEST[trial.system] == trial.where["lr"]
        value = level * (trial.system == "kcl") + 0.3 - 0.2 * good + 0.01 * rng.standard_normal((6, 2))
        values[str(trial), seed] = {"T2A R@1": value} | {name: value[:, 0] + 1 for name in comparisons.CONSISTENCY}
        head = {"system": trial.system, **trial.where, "seed": seed}
        rows += [{**head, "epoch": n, "step": n, "R@1": 0.1 + 0.1 * good} for n in (1, 2)]
    history = pd.DataFrame(rows)
    return Scores(experiment, values, history, history, Stamp("now", "", (0, 1), 0.0, {}))


def validation():
    """What the same runs score on validation: English alone would choose the other rate."""
    of = experiments.on_validation(staged().experiment)
    values = {}
    for trial, seed in of.cells:
        good = BEST[trial.system] == trial.where["lr"]
        value = np.array([[0.5 - 0.1 * good, 0.1 + 0.5 * good]] * 6)
        values[str(trial), seed] = {"R@1": value}
    return replace(staged(), experiment=of, clips=values)


def test_validation_in_all_languages_chooses_the_rate_and_the_test_has_no_say():
    table = experiments.rates_table(validation())
    assert len(table) == 16
    assert table["valid R@1"].tolist() == pytest.approx([0.5 if each else 0.3 for each in table["chosen"]])
    best = set(table[table["chosen"]][["system", "lr"]].itertuples(index=False, name=None))
    assert best == set(BEST.items())
    one = experiments.stages(staged(), validation())["aligned", "nothing"]
    trial = staged().trial("kcl", {"telling": "aligned", "start": "nothing", "lr": BEST["kcl"]})
    np.testing.assert_array_equal(one.clips["kcl", 1]["T2A R@1"], staged().clips[str(trial), 1]["T2A R@1"])


def test_a_stage_is_an_experiment_in_which_nothing_varies():
    scores = experiments.stages(staged(), validation())
    assert set(scores) == {(telling, start) for telling in ("aligned", "retold") for start in ("ml-clap", "nothing")}
    assert next(iter(scores)) == ("aligned", "ml-clap")
    one = scores["aligned", "ml-clap"]
    assert set(one.clips) == {(system, seed) for system in BEST for seed in (0, 1)}
    assert {"telling", "start", "lr"}.isdisjoint(one.table.columns)
    assert one.contrast("kcl", "ml-clap", "T2A R@1").value == pytest.approx(0.1, abs=0.02)
    assert one.table["unconverged"].tolist() == pytest.approx([0] * len(one.table))
    assert comparisons.evenness(one, [("kcl", "ml-clap")])["MRV"].str.startswith("+").all()


def test_nothing_stands_in_for_runs_or_a_validation_that_were_not_kept():
    nothing = replace(staged(), clips={})
    assert experiments.stages(nothing, validation()) == {}
    assert experiments.stages(staged(), nothing) == {}


def test_all_runs_of_a_stage_go_on_from_one_long_run(ground):
    experiment = experiments.starts((0, 1))
    cells = compute.plans_of(ground, experiment)
    first, last = compute.rounds(ground, experiment, cells)
    assert len(first) == 1
    bases = {plan.path: plan for plan in first}
    for (trial, _), plan in cells.items():
        if trial.where["start"] == "nothing":
            assert plan.base is None
        else:
            assert bases[plan.base].seed not in experiment.seeds
            assert bases[plan.base].recipe.name == "ml-clap"
            assert bases[plan.base].world is plan.world
    assert len(last) == len(cells)


def test_captions_of_a_stage_are_translations_on_the_materials_own_features(ground):
    assert ground.translated.test.captions("fra") != ground.data().test.captions("fra")
    heard = ground.view("aligned/nothing").data
    assert heard.test.key == ground.view("frozen").data.test.key  # the same features
    assert heard.test.captions("fra") == ground.translated.test.captions("fra")
    valid = ground.view("aligned/valid").data
    assert valid.test.key == heard.valid.key
    assert valid.test.captions("fra") == heard.valid.captions("fra")
    with pytest.raises(UnknownNameError, match="stage"):
        ground.view("aligned/sung")


def test_a_text_encoder_that_is_trained_goes_on_from_one_that_was(ground):
    experiment = experiments.text_side((0,))
    plans = compute.plans_of(ground, experiment).values()
    assert {plan.recipe.text for plan in plans} == {"words"}
    first = ground.first_run(WORDS)
    assert first.recipe.encoder_options == next(iter(plans)).recipe.encoder_options
    assert {plan.base for plan in plans} == {first.path}


def test_end_to_end_svr_has_the_control_of_a_radius_of_zero():
    experiment = experiments.svr_end_to_end((0,), epochs=3)
    trial = experiment.trials[1]
    assert trial.system == "twice"
    assert (trial.overrides["radius"], trial.overrides["epochs"]) == (0.0, 6)
    assert experiment.data == "whole"

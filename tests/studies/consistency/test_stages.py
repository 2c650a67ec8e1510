"""Two starts and two tellings: what a stage's runs go on from, and which rate of them is compared."""

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
from pullpush.studies.consistency import comparisons, experiments, stage_figures
from pullpush.studies.consistency.grounds import ALIGNED, ML_CLAP, WORDS, Grounds, Stage, parsed

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


def chosen():
    return experiments.tuned(staged(), validation())


def test_validation_in_all_languages_chooses_the_rate_and_the_test_has_no_say():
    scores = chosen()
    assert {(trial.system, trial.where["lr"]) for trial in scores.experiment.trials} == set(BEST.items())
    table = experiments.rates_table(validation())
    assert len(table) == 16
    assert table["chosen"].sum() == 8
    assert table["valid R@1"].tolist() == pytest.approx([0.5 if each else 0.3 for each in table["chosen"]])
    assert scores.contrast("kcl", "ml-clap", "T2A R@1", {"telling": "aligned", "start": "nothing"}).seeds == 2


def test_a_stage_is_an_experiment_in_which_nothing_varies():
    scores = experiments.stages(chosen())
    assert list(scores) == [
        ("aligned", "ml-clap"),
        ("aligned", "nothing"),
        ("retold", "ml-clap"),
        ("retold", "nothing"),
    ]
    one = scores["aligned", "ml-clap"]
    assert set(one.clips) == {(system, seed) for system in BEST for seed in (0, 1)}
    assert {"telling", "start", "lr"}.isdisjoint(one.table.columns)
    assert one.contrast("kcl", "ml-clap", "T2A R@1").value == pytest.approx(0.1, abs=0.02)
    assert not experiments.stage(staged(), "aligned", "somewhere")
    nothing = replace(staged(), clips={})
    assert not experiments.tuned(nothing, validation())
    assert not experiments.tuned(staged(), nothing)
    assert experiments.stages(nothing) == {}


def test_stages_stand_beside_each_other_in_tables_and_figures():
    stages, pairs = experiments.stages(chosen()), [("kcl", "ml-clap")]
    gains = comparisons.stage_gains(stages, pairs, "T2A R@1")
    assert list(zip(gains["telling"], gains["start"], strict=True)) == list(stages)
    assert list(comparisons.stage_standings(stages, ["T2A R@1"])["telling"]) == ["aligned"] * 4 + ["retold"] * 4
    assert comparisons.evenness(stages, pairs)["MRV"].str.startswith("+").all()
    left, right = stage_figures.gains_by_stage(gains).axes
    assert (left.get_title(), right.get_title()) == ("translated captions", "retold captions")
    assert left.get_xlabel().startswith("T2A R@1 (points")
    one_start = gains[(gains["telling"] == "aligned") | (gains["start"] == "nothing")]
    assert len(stage_figures.gains_by_stage(one_start).axes[1].lines) < len(right.lines)
    behind = comparisons.behind(gains.assign(high=[-0.1, 0.1, 0.1, 0.1]))
    assert behind["start"].tolist() == ["ml-clap"]


def test_errors_are_drawn_as_angles_and_per_unit_of_spread():
    rows = [{"recipe": "kcl", "seed": 0, "step": n, "one": 10.0 * n, "one aim": 0.5} for n in range(3)]
    left, right = stage_figures.aim_history(pd.DataFrame(rows)).axes
    assert left.lines[0].get_ydata().tolist() == [0, 10, 20]
    assert set(right.lines[0].get_ydata()) == {0.5}


def test_all_runs_of_a_stage_go_on_from_one_long_run(ground):
    stage = Stage(ALIGNED, ML_CLAP)
    assert parsed(stage.named) == stage
    experiment = experiments.starts((0, 1), {"ml-clap": (1e-3,), "nothing": (1e-3,)}, ("aligned", "retold"))
    cells = compute.plans_of(ground, experiment)
    first, last = compute.rounds(ground, experiment, cells)
    assert len(first) == 2  # one a telling
    bases = {plan.path: plan for plan in first}
    for (trial, _), plan in cells.items():
        if trial.where["start"] == "nothing":
            assert plan.base is None
        else:
            assert bases[plan.base].seed not in experiment.seeds
            assert bases[plan.base].recipe.name == "ml-clap"
            assert bases[plan.base].world is plan.world
    assert len(last) == len(cells)


def test_captions_of_the_aligned_view_are_translations_and_those_of_the_retold_one_the_materials_own(ground):
    own = ground.data().test.captions("fra")
    assert ground.told("retold").test.captions("fra") == own
    assert ground.told("aligned").test.captions("fra") != own
    assert ground.view("retold/nothing").data is ground.view("frozen").data
    heard = ground.view("aligned/nothing").data
    assert heard.test.key == ground.view("frozen").data.test.key  # the same features
    valid = ground.view("aligned/valid").data
    assert valid.test.key == heard.valid.key
    assert valid.test.captions("fra") == heard.valid.captions("fra")
    with pytest.raises(UnknownNameError, match="telling"):
        ground.view("sung/nothing")
    with pytest.raises(UnknownNameError, match="telling"):
        ground.told("sung")


def test_a_text_encoder_that_is_trained_goes_on_from_one_that_was(ground):
    experiment = experiments.text_side((0,))
    plans = compute.plans_of(ground, experiment).values()
    assert {plan.recipe.text for plan in plans} == {WORDS}
    first = ground.first_run(Stage(ALIGNED, ML_CLAP, WORDS))
    assert first.recipe.encoder_options == next(iter(plans)).recipe.encoder_options
    assert {plan.base for plan in plans} == {first.path}


def test_end_to_end_svr_has_the_control_of_a_radius_of_zero():
    experiment = experiments.svr_end_to_end((0,), epochs=3)
    trial = experiment.trials[1]
    assert trial.system == "twice"
    assert (trial.overrides["radius"], trial.overrides["epochs"]) == (0.0, 6)
    assert experiment.data == "whole"

"""The recipe that the design chooses, as text and as a run, and models seen at their end."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from pullpush.data.batches import PairDataset
from pullpush.data.clips import load_data
from pullpush.lab import compute, session
from pullpush.losses import TERMS, Offer
from pullpush.losses.offer import apply
from pullpush.studies.taught import TEACHERS
from pullpush.studies.together import experiments, models, plots, science
from pullpush.studies.together.data import Context
from pullpush.training import recipe as make

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def ground(tmp_path):
    return Context(session.start("07-together", "smoke", out=tmp_path), compute_long=True)


@pytest.mark.parametrize("high", [(), ("SVR", "all languages"), experiments.NAMES])
def test_what_is_written_is_what_is_trained(high):
    tuned = {"softmax": {"lr": 0.002, "tau": 0.1}, "sigmoid": {"lr": 0.003}}
    text = experiments.written(high, dim=16, tuned=tuned)
    space = {}
    exec(text, space)
    name, overrides = experiments.system(high, dim=16, tuned=tuned)
    assert space["start_from"] == make(name, **overrides)


def test_labels_are_read_back():
    for high in science.Design(*experiments.HALF).runs:
        assert experiments.high_of(experiments.label(high)) == high


def test_a_small_factorial_goes_from_runs_to_figures(ground):
    """One pass through all that the page does, on a design of few runs."""
    design = science.Design(*experiments.SMALL)
    of_all = experiments.combined("factorial", design.runs, dim=ground.dim, tuned={}, seeds=(0,))
    found = compute.run(ground, of_all)
    decides = compute.run(ground, experiments.on_validation(of_all))
    scored = {metric: science.responses(found, design, metric) for metric in science.METRICS}
    assert scored["R@1"].shape == (len(design), 1, len(ground.scenes.test))
    assert not np.array_equal(scored["R@1"], scored["English"])
    assert science.responses(decides, design, "R@1").shape[2] == len(ground.scenes.valid)

    main = [science.effects(design, scored[name], order=1).assign(metric=name) for name in scored]
    assert science.shown(pd.concat(main, ignore_index=True))["effect"].tolist() == list(design.factors)
    both = science.effects(design, scored["R@1"])
    assert plots.interaction_matrix(both, design.factors, ["SVR"]).axes
    assert plots.design_figure(design).axes

    surface, _ = science.predicted(design, science.responses(decides, design, "R@1").mean(axis=2))
    assert len(surface) == 2 ** len(design.factors)
    best = surface.loc[surface["value"].idxmax()]
    start_from = surface.set_index("system").loc[experiments.label(science.chosen(decides, design))]
    assert start_from["terms"] <= best["terms"]
    assert start_from["value"] >= best["value"] - best["error"]

    costs = models.step_costs(models.steps_of(ground.view("frozen"), [(), *design.runs[:4]]), rounds=2)
    priced = science.priced(
        found, design, models.step_times(models.steps_of(ground.view("frozen"), design.runs), rounds=2)
    )
    assert len(priced) == len(design)
    priced = science.priced(found, design, costs)
    assert priced["measured"].sum() == len({*costs["system"]} & {experiments.label(high) for high in design.runs})
    assert priced.loc[priced["front"], "measured"].all()
    assert plots.pareto_front(priced, marked={"InfoNCE": "InfoNCE"}).axes


def test_without_scores_there_is_no_recipe_but_infonce(ground):
    none = compute.run(ground, experiments.combined("none", [()], dim=8, tuned={}, seeds=(0,)))
    assert science.chosen(replace(none, clips={}), science.Design(*experiments.HALF)) == frozenset()


def test_models_are_seen_at_their_end(ground):
    high = (experiments.SVR, experiments.SOFT, experiments.TOPICS, experiments.ALL)
    seen = experiments.combined("seen", ((), high), dim=ground.dim, tuned={}, seeds=(0,))
    runs = {trial.system: plan.train() for (trial, _), plan in compute.plans_of(ground, seen).items()}
    data = ground.view("frozen").data
    moved = models.forces_at_the_end(runs[experiments.label(high)], data.train)
    assert moved["term"].unique().tolist() == ["kcl", "svr", "distillation", "clusters"]
    assert np.isfinite(moved[["along", "across", "norm"]]).all(axis=None)


# Combinations of terms


def test_every_factor_changes_the_recipe():
    plain = experiments.system((), dim=8)
    for name in experiments.NAMES:
        assert experiments.system({name}, dim=8) != plain


def test_a_run_has_the_terms_of_its_factors_and_no_others():
    name, overrides = experiments.system({experiments.SIGMOID, experiments.SVR, experiments.TOPICS}, dim=8)
    made = make(name, **overrides)
    assert [term.name for term in made.terms] == ["siglip-languages", "svr", "clusters"]
    assert made.terms[-1].weight == experiments.HEADS
    assert (made.sampling, made.terms[-1].options["dim"]) == ("random", 8)


def test_what_was_searched_goes_to_its_loss():
    tuned = {"softmax": {"lr": 0.5, "tau": 0.2}, "sigmoid": {"lr": 0.1}}
    rates = {}
    for high in ((), (experiments.SIGMOID,), (experiments.SVR, experiments.SIGMOID)):
        name, overrides = experiments.system(high, dim=8, tuned=tuned)
        rates[high] = make(name, **overrides).lr
    assert list(rates.values()) == [0.5, 0.1, 0.1]


@pytest.mark.parametrize("languages", [1, 3])
def test_with_one_language_or_several_the_softmax_is_infonce_of_each(languages):
    loss, info = TERMS["kcl"].make(0.1), TERMS["infonce"].make(0.1)
    sides = torch.nn.functional.normalize(torch.randn(1 + languages, 6, 4, dtype=torch.float64), dim=-1)
    offer = Offer(sides[0], sides[1], tuple(sides[2:]))
    expected = torch.stack([info(sides[0], text).value for text in sides[1:]]).mean()
    torch.testing.assert_close(experiments.SOFTMAX_LOSS.weight * apply(loss, offer).value, expected)
    for name, value in ((experiments.SVR, expected), (experiments.SOFT, info(sides[0], sides[1]).value)):
        term = experiments.STAND_INS[name]
        stand_in = replace(term, options={**term.options, "tau": 0.1}).create(6)
        torch.testing.assert_close(apply(stand_in, offer).value, value, check_dtype=False)


def test_a_stand_in_changes_one_term_of_a_run():
    of_all = experiments.combined("all", science.Design(*experiments.HALF).runs, dim=8, tuned={}, seeds=(0,))
    terms = {trial.system: trial.overrides["terms"] for trial in of_all.trials}
    replaced = experiments.stand_ins(of_all).trials
    assert len(replaced) == len(of_all.trials) == len({str(trial) for trial in replaced})
    for trial in replaced:
        before, after = terms[trial.system], trial.overrides["terms"]
        (pair,) = ((old, new) for old, new in zip(before, after, strict=True) if old != new)
        assert pair == (*experiments.SUMMANDS[trial.where["replaced"]], experiments.STAND_INS[trial.where["replaced"]])


# Columns


def test_columns_come_with_the_clips_and_name_the_world(ground):
    data = ground.view("frozen").data
    held = {name: np.asarray(values[:]) for name, values in data.train.columns.items() if name != "scene"}
    assert held["teachers"].shape == (len(data.train), TEACHERS, 2, ground.dim)
    assert np.linalg.norm(held["teachers"].astype(np.float32), axis=-1) == pytest.approx(1, abs=2e-3)
    assert len(set(held["clusters"])) > 1
    assert max(held["clusters"]) < experiments.ROOM
    assert data.identity != ground.view("plain").data.identity
    assert replace(data.config, topics=None).load().words != data.words
    again = load_data(data.config)
    assert np.array_equal(again.train.columns["teachers"][:], held["teachers"])


def test_batches_bring_what_teachers_make_of_their_clips(ground):
    train = ground.view("frozen").data.train
    data = PairDataset(train, columns=("teachers", "clusters"))
    batch = next(iter(data.batches(4, seed=0, epoch=0)))
    expected = train.columns["teachers"][batch.index.numpy()]
    assert np.array_equal(batch.columns["teachers"].numpy(), expected)


# Experiments


def test_the_search_chooses_the_rate_that_is_best_in_both_companies(ground):
    search = experiments.search(dim=ground.dim, seeds=(1000,))
    found = compute.run(ground, search)
    table = experiments.tried(found)
    assert len(table) == 4
    assert table["mean"].to_numpy() == pytest.approx((table["nothing"] + table["everything"]) / 2)
    best = experiments.chosen(found)
    assert set(best) == {"softmax", "sigmoid"}
    for loss, options in best.items():
        rows = table[table["system"] == loss]
        assert rows.loc[rows["mean"].idxmax(), "lr"] == options["lr"]


def test_a_factorial_has_every_run_once():
    of_all = experiments.combined("all", science.Design(*experiments.HALF).runs, dim=8, tuned={}, seeds=(0, 1))
    assert len(of_all.trials) == 64
    assert len({str(trial) for trial in of_all.trials}) == 64


# Cost


def test_steps_are_counted_beside_the_baseline(ground):
    steps = models.steps_of(ground.view("frozen"), [(), {experiments.SVR}, {experiments.ALL}])
    table = models.step_costs(steps, rounds=3).set_index("system")
    assert table.loc["InfoNCE", ["time", "FLOPs ratio", "memory ratio"]].tolist() == [1, 1, 1]
    assert (table.loc[[experiments.SVR, experiments.ALL], ["FLOPs ratio", "memory ratio"]] > 1).all(axis=None)
    assert table.loc[experiments.ALL, "FLOPs"] > table.loc[experiments.SVR, "FLOPs"]

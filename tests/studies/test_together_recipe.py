"""The recipe that the design chooses, as text and as a run, and models seen at their end."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab import compute, session
from pullpush.studies.together import cost, effects, examples, experiments, figures, pareto, recipe, terms
from pullpush.studies.together.grounds import Grounds
from pullpush.training import recipe as make

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def ground(tmp_path):
    return Grounds(session.start("07-together", "smoke", out=tmp_path), compute_long=True)


@pytest.mark.parametrize("high", [(), ("SVR", "all languages"), terms.NAMES])
def test_what_is_written_is_what_is_trained(high):
    tuned = {"softmax": {"lr": 0.002, "tau": 0.1}, "sigmoid": {"lr": 0.003}}
    text = recipe.written(high, dim=16, tuned=tuned)
    space = {}
    exec(text, space)
    name, overrides = terms.system(high, dim=16, tuned=tuned)
    assert space["start_from"] == make(name, **overrides)


def test_labels_are_read_back():
    for high in terms.half().runs:
        assert terms.high_of(terms.label(high)) == high


def test_a_small_factorial_goes_from_runs_to_figures(ground):
    """One pass through all that the page does, on a design of few runs."""
    design = terms.small()
    of_all = experiments.combined("factorial", design.runs, dim=ground.dim, tuned={}, seeds=(0,))
    found = compute.run(ground, of_all)
    decides = compute.run(ground, experiments.on_validation(of_all))
    scored = {metric: effects.responses(found, design, metric) for metric in effects.METRICS}
    assert scored["R@1"].shape == (len(design), 1, len(ground.scenes.test))
    assert not np.array_equal(scored["R@1"], scored["English"])
    assert effects.responses(decides, design, "R@1").shape[2] == len(ground.scenes.valid)

    main = [effects.effects(design, scored[name], order=1).assign(metric=name) for name in scored]
    assert effects.shown(pd.concat(main, ignore_index=True))["effect"].tolist() == list(design.factors)
    both = effects.effects(design, scored["R@1"])
    assert figures.interaction_matrix(effects.interactions(both, design.factors), design.factors, ["SVR"]).axes
    contrasts = effects.half_normal(design, scored["R@1"])
    assert figures.half_normal_plot(contrasts, effects.lenth(contrasts["value"])).axes
    assert figures.design_figure(design).axes

    surface = pareto.fitted(design, effects.responses(decides, design, "R@1").mean(axis=2)).predicted()
    assert len(surface) == 2 ** len(design.factors)
    best = surface.loc[surface["value"].idxmax()]
    start_from = surface.set_index("system").loc[terms.label(recipe.chosen(decides, design))]
    assert start_from["terms"] <= best["terms"]
    assert start_from["value"] >= best["value"] - best["error"]

    costs = cost.step_costs(cost.steps_of(ground.view("frozen"), [(), *design.runs[:4]]), rounds=2)
    priced = pareto.priced(found, design, cost.step_times(cost.steps_of(ground.view("frozen"), design.runs), rounds=2))
    assert len(priced) == len(design)
    priced = pareto.priced(found, design, costs)
    assert priced["measured"].sum() == len({*costs["system"]} & {terms.label(high) for high in design.runs})
    assert priced.loc[priced["front"], "measured"].all()
    assert figures.pareto_front(priced, marked={"InfoNCE": "InfoNCE"}).axes
    assert figures.costs_figure(costs).axes


def test_what_combinations_have_over_infonce_with_fresh_seeds(ground):
    both = ((), {"SVR"}, {"SVR", terms.ALL})
    of_recipe = experiments.combined("recipe", (*both, ()), dim=ground.dim, tuned={}, seeds=(5, 6))
    scores = compute.run(ground, of_recipe)
    table = recipe.gains({"frozen": scores, "again": scores})
    chosen = terms.label(both[-1])
    pairs = [("SVR", "InfoNCE"), (chosen, "InfoNCE"), (chosen, "SVR")]
    assert [*dict.fromkeys(zip(table["system"], table["baseline"], strict=True))] == pairs
    table = table[table["baseline"] == "InfoNCE"]
    assert table["protocol"].unique().tolist() == ["frozen", "again"]
    expected = scores.contrast(chosen, "InfoNCE", "R@1").value
    found = table[(table["metric"] == "R@1") & (table["system"] == chosen)]
    assert found["value"].tolist() == pytest.approx([expected, expected])
    languages = recipe.by_language({"frozen": scores, "again": scores})
    assert languages["point"].nunique() == 1 + len(LANGUAGES)
    assert languages.loc[languages["point"] == "mean", "value"].tolist() == pytest.approx([expected, expected])
    assert languages["protocol"].unique().tolist() == ["frozen", "again"]


def test_without_scores_there_is_no_recipe_but_infonce(ground):
    none = compute.run(ground, experiments.combined("none", [()], dim=8, tuned={}, seeds=(0,)))
    assert recipe.chosen(replace(none, clips={}), terms.half()) == frozenset()


def test_models_are_seen_at_their_end(ground):
    runs = {
        terms.label(high): recipe.plan(ground, high, tuned={}, seed=0).train()
        for high in ((), (terms.SVR, terms.SOFT, terms.TOPICS, terms.ALL))
    }
    data = ground.view("frozen").data
    moved = examples.forces_at_the_end(runs["SVR + all languages + soft labels + topics"], data.train)
    assert moved["term"].unique().tolist() == ["kcl", "svr", "distillation", "clusters"]
    assert np.isfinite(moved[["along", "across", "norm"]]).all(axis=None)

    spaces = examples.spaces(runs, data.test)
    assert examples.shares(spaces, 0.1, batch_size=8)["system"].tolist() == list(runs)
    row = 1
    for run in runs.values():
        ranks = examples.ranks(run.model, data.test, row)
        assert len(ranks) == len(LANGUAGES)
        assert (examples.nearest(run.model, data.test, row) == row) == (ranks[0] == 1)

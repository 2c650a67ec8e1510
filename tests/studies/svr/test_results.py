"""What chapter 2 reads from its experiments, on a tiny world and on scores whose answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pullpush.errors import PullPushError
from pullpush.lab import material
from pullpush.lab.comparisons import differences
from pullpush.lab.experiments import Experiment, ExperimentError, Trial
from pullpush.lab.scores import Scores
from pullpush.metrics import difference
from pullpush.studies.svr import data, results

BASE, TWICE, SVR = "infonce", "twice", "infonce+bi-dynamic-svr"
FROZEN, TUNED = "frozen/cnn", "tuned/yamnet"


def test_systems_have_the_names_that_the_chapter_prints(svr_scores):
    table = results.standings(svr_scores, ["R@1"])
    assert list(table["system"]) == ["InfoNCE", "InfoNCE twice (R = 0)", "InfoNCE + bi-DynamicSVR"]


def test_differences_are_saved_in_points():
    found = [({"name": n}, difference(v)) for n, v in {"a": [[0.01], [0.02]], "b": [[0.08], [0.09]]}.items()]
    table = results.in_points(differences(found), ["name"])
    assert list(table) == ["name", "difference", "low", "high", "half width", "p (Holm)", "seeds", "items"]
    assert list(table["difference"]) == pytest.approx([1.5, 8.5])
    assert list(table["p (Holm)"]) == list(differences(found)["p"])


def test_zero_shot_is_measured_for_every_run_where_there_are_labels(runs, heard, book):
    table = results.zero_shots(runs, material.of(book, "scenes").sounds(heard, None))
    assert len(table) == len(runs)
    assert (table["chance"] == 1 / len(heard.bank)).all()
    with pytest.raises(PullPushError, match=r"no labels: .* `zero_shot`"):
        results.zero_shots(runs, {})


def test_what_falls_is_the_first_quarter_minus_the_last():
    np.testing.assert_allclose(results.fall(np.array([[4.0, 3.0, 2.0, 1.0], [0.0, 9.0, 9.0, 5.0]])), [[3], [-5]])


def test_numbers_of_a_run_are_in_the_order_of_the_seeds(svr_scores):
    values = results.over_training(svr_scores, SVR, "radius")
    assert values.shape == (2, svr_scores.steps.groupby(["system", "seed"]).size().max())
    for row, seed in zip(values, (0, 1), strict=True):
        assert row[0] == pytest.approx(svr_scores.runs[SVR, seed].steps["radius"].iloc[0])
    itself = results.drift_over(svr_scores, BASE, BASE, "gradient_drift_pull")
    assert (itself.value, itself.seeds) == (0.0, 2)


def test_a_head_start_is_the_lead_of_the_first_quarter_where_both_stand_at_one_point():
    """Planted: 4 points in the first of four quarters and none at the end; elsewhere the points differ."""
    point = {"tau": 0.1, "lr": 1e-3}
    trials = [
        Trial(
            name,
            "infonce",
            {**point, **({"tau": 0.2} if (name, protocol) == (SVR, TUNED) else {})},
            {"protocol": protocol},
        )
        for protocol in (FROZEN, TUNED)
        for name in (BASE, SVR)
    ]
    rows = [
        {"system": trial.system, **trial.where, "seed": seed, "epoch": epoch, "R@1": lead + 0.01 * seed}
        for trial in trials
        for seed in (0, 1, 2)
        for epoch in range(1, 9)
        for lead in [(0.04, 0.02, 0.01, 0.0)[(epoch - 1) // 2] * (trial.system == SVR)]
    ]
    experiment = Experiment("race", tuple(trials), (0, 1, 2), data="frozen")
    scores = Scores(experiment, {}, pd.DataFrame(rows), pd.DataFrame(), None)
    table = results.lead(scores, [SVR], BASE)
    assert [*table["protocol"]] == [FROZEN] * 4
    assert [*table["value"]] == pytest.approx([0.04, 0.02, 0.01, 0.0])
    assert [*table["ahead"]] == ["3/3", "3/3", "3/3", "0/3"]
    assert results.head_start(scores, SVR, BASE).value == pytest.approx(0.04)
    with pytest.raises(ExperimentError, match="in no protocol"):
        results.head_start(replace(scores, experiment=replace(experiment, trials=tuple(trials[2:]))), SVR, BASE)


def test_epochs_to_where_a_baseline_ends_count_those_that_come_there():
    curves = {
        "infonce": ([0.1, 0.3, 0.5, 0.5], [0.1, 0.2, 0.3, 0.5]),
        "fast": ([0.5, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.4]),
        "late": ([0.1, 0.2, 0.3, 0.495], [0.1, 0.2, 0.3, 0.48]),
        "never": ([0.1] * 4, [0.2] * 4),
    }
    rows = [
        {"system": system, "seed": seed, "epoch": epoch, "R@1": value}
        for system, seeds in curves.items()
        for seed, values in enumerate(seeds)
        for epoch, value in enumerate(values, start=1)
    ]
    found = results.epochs_to_target(pd.DataFrame(rows), [*curves, "untried"], baseline="infonce").set_index("system")
    assert found["reached"].to_dict() == {"infonce": 2, "fast": 2, "late": 1, "never": 0}
    assert found["epoch"].dropna().to_dict() == {"infonce": 3.5, "fast": 1.5, "late": 4.0}
    assert found["earlier"].dropna().to_dict() == {"fast": 2.0}  # one seed is too few for the others
    assert found.loc["fast", "low"] == found.loc["fast", "high"] == 2.0


def test_main_effects_are_those_that_were_put_in_and_what_was_not_crossed_stands_alone(scores_of):
    added = {"P": 0.04, "J": -0.02}
    values = {
        (FROZEN, name): [0.5 + seed / 1000 + sum(added.get(letter, 0) for letter in name[4:]) for seed in (0, 1)]
        for name in results.DESIGN.values()
    }
    values |= {(TUNED, name): [0.6, 0.61] for name in data.DECISIVE}
    values[TUNED, "SVR:P"] = [0.65, 0.66]
    table = results.main_effects(scores_of(values)).set_index(["protocol", "effect"])
    found = table.loc[FROZEN, "value"].to_dict()
    assert found == pytest.approx({"probabilities": 0.04, "Jacobian": -0.02, "partner": 0}, abs=1e-12)
    assert table.loc[(TUNED, "probabilities"), "value"] == pytest.approx(0.05)
    assert table.loc[(TUNED, "Jacobian"), "kind"] == "alone"


def test_scaled_pushes_lie_beside_infonce_at_one(scores_of):
    values = {(FROZEN, name): [0.5, 0.51] for name in ("infonce", *data.SCALED)}
    values[FROZEN, "across ×0.5"] = [0.4, 0.41]
    table = results.scaled(results.over(scores_of(values), "infonce")).set_index(["part", "factor"])
    assert table.loc[("perpendicular", 0.5), "value"] == pytest.approx(-0.1)
    assert table.loc[("perpendicular", 1.0), "value"] == table.loc[("sideways", 1.0), "value"] == 0
    assert set(table.loc["sideways"].index) == {0.0, 0.5, 1.0}


def test_runs_that_were_trained_twice_stand_side_by_side(scores_of):
    first = scores_of({(FROZEN, "infonce"): [0.5, 0.52, 0.6], (FROZEN, "twice"): [0.53, 0.55, 0.6]})
    second = {(FROZEN, "infonce"): [0.51, 0.50], (FROZEN, "twice"): [0.5, 0.56], (FROZEN, "new"): [0.1, 0.1]}
    table = results.again(first, scores_of(second))
    assert list(table["system"]) == ["infonce", "twice"], "what only one of them trained is left out"
    assert list(table["seeds"]) == [2, 2]
    assert np.allclose(table[["first", "second", "one run"]], [[51, 50.5, 2], [54, 53, 3]])
    assert table["over infonce, first"][0] == ""
    assert [table[f"over infonce, {name}"][1].split(" ± ")[0] for name in ("first", "second")] == ["+3.0", "+2.5"]
    with pytest.raises(ExperimentError, match="declare no run alike"):
        results.again(first, scores_of({(FROZEN, "new"): [0.1, 0.1]}))


def test_drift_is_that_of_the_second_half(scores_of):
    values = {(FROZEN, name): [0.1 * n, 0.1 * n] for n, name in enumerate(("infonce", "twice", "SVR:P"), 1)}
    runs = results.drift_and_recall(scores_of(values))
    assert runs["update_drift"].tolist() == [0, 0, -1, -1, -2, -2]

"""Effects against effects that were put in, and intervals that hold them as often as they should."""

import numpy as np
import pandas as pd
import pytest

from pullpush.studies.together import pareto
from pullpush.studies.together.design import fraction, full
from pullpush.studies.together.effects import (
    effect,
    effects,
    half_normal,
    interactions,
    lenth,
    shown,
    standing,
)

HALF = fraction("ABCDE", {"E": "ABCD"})
TRUE = {("A",): 0.08, ("C",): -0.03, ("A", "B"): 0.02}


def simulated(design, seed, *, seeds=3, clips=200, noise=0.02):
    """Runs with the true effects, on clips and seeds of different levels."""
    draw = np.random.default_rng(seed)
    mean = sum(size / 2 * design.contrast(*one) for one, size in TRUE.items())
    levels = draw.normal(0, 0.2, (1, 1, clips)) + draw.normal(0, 0.05, (1, seeds, 1))
    own = draw.normal(0, noise, (len(design), seeds, 1)) + draw.normal(0, 0.3, (len(design), seeds, clips))
    return 0.4 + mean[:, None, None] + levels + own


def test_without_noise_effects_are_those_that_were_put_in():
    mean = sum(size / 2 * HALF.contrast(*one) for one, size in TRUE.items())
    table = effects(HALF, mean[:, None, None] + np.zeros((len(HALF), 2, 3)))
    found = dict(zip(table["effect"], table["value"], strict=True))
    for one in HALF.effects():
        assert found[" × ".join(one)] == pytest.approx(TRUE.get(one, 0.0), abs=1e-12)


def test_an_effect_is_what_least_squares_says():
    values = simulated(HALF, 1)
    slopes = np.linalg.lstsq(HALF.model(), values.mean(axis=(1, 2)), rcond=None)[0]
    for place, one in enumerate(HALF.effects()):
        assert effect(HALF, values, *one).value == pytest.approx(2 * slopes[1 + place])


def test_intervals_hold_the_true_effect_about_as_often_as_they_say():
    held = [d.low <= 0.08 <= d.high for seed in range(200) for d in [effect(HALF, simulated(HALF, seed), "A")]]
    assert 0.9 <= np.mean(held) <= 0.99


def test_levels_of_seeds_and_clips_do_not_widen_an_effect():
    values = simulated(HALF, 2)
    moved = values + 10 * np.arange(values.shape[1])[None, :, None] + np.linspace(0, 9, values.shape[2])
    assert effect(HALF, moved, "A").half_width == pytest.approx(effect(HALF, values, "A").half_width)


def test_few_of_many_effects_of_nothing_stand_after_holm():
    wrong = 0
    for seed in range(40):
        table = effects(HALF, simulated(HALF, seed)).set_index("effect")
        nothing = table.drop(index=[" × ".join(one) for one in TRUE])
        wrong += len(standing(nothing)) > 0
    assert wrong <= 6, "5 % of the tables, and what chance adds"


def test_what_stands_has_a_star_and_recall_is_in_points():
    table = pd.DataFrame({"effect": ["A", "B"], "value": [0.08, -0.03], "low": [0.06, -0.07], "high": [0.1, 0.01]})
    table = table.assign(**{"half width": [0.02, 0.04], "p": [0.01, 0.2]})
    both = pd.concat([table.assign(metric=name) for name in ("R@1", "log rank variance")], ignore_index=True)
    found = shown(both).set_index("effect")
    assert found["R@1"].tolist() == ["+8.0 ± 2.0 *", "−3.0 ± 4.0"]
    assert found.loc["A", "log rank variance"] == "+0.080 ± 0.020 *"


def test_the_matrix_of_interactions_has_main_effects_on_its_diagonal():
    table = effects(HALF, simulated(HALF, 0))
    found = interactions(table, HALF.factors)
    assert np.array_equal(found, found.T)
    assert found[0, 0] == table.set_index("effect").loc["A", "value"]
    assert found[0, 1] == table.set_index("effect").loc["A × B", "value"]


def test_lenths_error_is_that_of_noise_where_few_effects_are_real():
    draw = np.random.default_rng(0)
    found = [lenth(np.append(draw.normal(0, 2.0, 60), [30.0, -40.0, 25.0])).error for _ in range(200)]
    assert np.mean(found) == pytest.approx(2.0, rel=0.08)
    assert lenth([0.0] * 5).margin == 0
    with pytest.raises(ValueError, match="three effects"):
        lenth([1.0, 2.0])


def test_lenths_published_example():
    """The 15 effects of Box, Hunter & Hunter's process development study (Table 5.10a), percent conversion."""
    values = [-8.0, 24.0, -2.25, -5.5, 1.0, 0.75, 0.0, -1.25, 4.5, -0.25, -0.75, 0.5, -0.25, -0.75, -0.25]
    assert lenth(values).error == pytest.approx(1.125)


def test_a_half_normal_plot_has_all_contrasts_in_order():
    table = half_normal(HALF, simulated(HALF, 0))
    assert len(table) == len(HALF) - 1
    assert table["size"].is_monotonic_increasing
    assert table["quantile"].is_monotonic_increasing
    assert table.iloc[-1]["effect"] == "A"


# The surface, the rule and the front


def test_a_surface_predicts_what_was_not_run():
    whole = full("ABCDE")
    truth = sum(size / 2 * whole.contrast(*one) for one, size in TRUE.items())
    mean = sum(size / 2 * HALF.contrast(*one) for one, size in TRUE.items())
    surface = pareto.fitted(HALF, mean[:, None] + np.array([[0.0, 0.3]]))
    assert surface.predicted()["value"].to_numpy() == pytest.approx(truth + 0.15)
    assert surface.error == pytest.approx(0, abs=1e-12), "the level of a block is no error"


def test_errors_of_predictions_are_as_large_as_they_say():
    design, found, claimed = full("ABCDE"), [], []
    for seed in range(150):
        noise = np.random.default_rng(seed).normal(0, 0.02, (len(design), 3))
        table = pareto.fitted(design, noise).predicted()
        found.append(table["value"].to_numpy())
        claimed.append(table["error"].to_numpy())
    assert np.std(found) == pytest.approx(np.mean(claimed), rel=0.1)


def test_aliased_interactions_have_no_surface():
    with pytest.raises(ValueError, match="cannot tell"):
        pareto.fitted(fraction("ABCD", {"D": "ABC"}), np.zeros((8, 2)))
    with pytest.raises(ValueError, match="of 16 runs"):
        pareto.fitted(HALF, np.zeros((8, 2)))


def test_the_rule_takes_the_simplest_of_those_that_are_near_the_best():
    table = pd.DataFrame({"system": list("abcd"), "terms": [0, 1, 1, 3], "value": [0.3, 0.39, 0.4, 0.405]})
    assert pareto.chosen(table.assign(error=0.02)) == "c"
    assert pareto.chosen(table.assign(error=0.001)) == "d"
    assert pareto.chosen(table.assign(error=0.5)) == "a"


def test_the_front_holds_what_nothing_dominates():
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.random((40, 2)).round(1), columns=["cost", "value"])
    on = pareto.front(table)
    for row in range(40):
        beaten = any(
            table.cost[other] <= table.cost[row]
            and table.value[other] >= table.value[row]
            and (table.cost[other] < table.cost[row] or table.value[other] > table.value[row])
            for other in range(40)
        )
        assert on[row] != beaten

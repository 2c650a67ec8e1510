"""Designs against a published table and orthogonality, effects against those put in, predictions, and the front."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from pullpush.studies.together import experiments, science
from pullpush.studies.together.experiments import ALL, EIGHTH, HALF, QUARTER, SIGMOID, SVR
from pullpush.studies.together.science import Design, effect, effects, front, predicted, shown, simplest, standing

# Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed., Table 6.22: factors, generators, runs, resolution.
PUBLISHED = [
    ("ABC", "C=AB", 4, "III"),
    ("ABCD", "D=ABC", 8, "IV"),
    ("ABCDE", "E=ABCD", 16, "V"),
    ("ABCDE", "D=AB E=AC", 8, "III"),
    ("ABCDEF", "F=ABCDE", 32, "VI"),
    ("ABCDEF", "E=ABC F=BCD", 16, "IV"),
    ("ABCDEF", "D=AB E=AC F=BC", 8, "III"),
    ("ABCDEFG", "G=ABCDEF", 64, "VII"),
    ("ABCDEFG", "F=ABCD G=ABDE", 32, "IV"),
    ("ABCDEFG", "E=ABC F=BCD G=ACD", 16, "IV"),
    ("ABCDEFG", "D=AB E=AC F=BC G=ABC", 8, "III"),
    ("ABCDEFGH", "G=ABCD H=ABEF", 64, "V"),
    ("ABCDEFGH", "F=ABC G=ABD H=BCDE", 32, "IV"),
    ("ABCDEFGH", "E=BCD F=ACD G=ABC H=ABD", 16, "IV"),
]


@st.composite
def designs(draw):
    """Regular fractions of up to seven factors."""
    count = draw(st.integers(2, 7))
    names = "ABCDEFG"[:count]
    basic = draw(st.integers(2, count))
    parts = st.lists(st.sampled_from(names[:basic]), min_size=2, max_size=basic, unique=True)
    return Design(names, {name: draw(parts) for name in names[basic:]})


@pytest.mark.parametrize(("factors", "generators", "runs", "resolution"), PUBLISHED)
def test_runs_and_resolution_are_those_of_the_published_table(factors, generators, runs, resolution):
    design = Design(factors, dict(pair.split("=") for pair in generators.split()))
    assert len(design) == runs
    assert design.resolution == resolution


@settings(max_examples=40, deadline=None)
@given(design=designs())
def test_main_effects_are_balanced_and_two_are_orthogonal_unless_they_are_aliases(design):
    for name in design.factors:
        assert design.contrast(name).sum() == 0 or (name,) in design.words
    for one, other in combinations(design.factors, 2):
        product = design.contrast(one) @ design.contrast(other)
        aliased = (other,) in design.aliases(one)
        assert abs(product) == (len(design) if aliased else 0)


@settings(max_examples=25, deadline=None)
@given(design=designs())
def test_aliases_are_the_effects_with_the_same_column_of_signs(design):
    every = design.effects(len(design.factors))
    for one in every[:12]:
        column = design.contrast(*one)
        same = [other for other in every if other != one and np.array_equal(design.contrast(*other), column)]
        assert sorted(same) == sorted(other for other in design.aliases(*one) if other)


@settings(max_examples=25, deadline=None)
@given(design=designs())
def test_a_saturated_set_of_contrasts_is_an_orthogonal_basis(design):
    columns = np.stack([np.ones(len(design)), *(design.contrast(*one) for one in design.saturated())])
    assert np.array_equal(columns @ columns.T, len(design) * np.eye(len(design)))


def test_a_fraction_is_a_part_of_the_full_design():
    whole = {tuple(row) for row in Design("ABCDE").signs.tolist()}
    part = [tuple(row) for row in Design("ABCDE", {"E": "ABCD"}).signs.tolist()]
    assert len(set(part)) == len(part) == 16
    assert set(part) < whole


def test_the_chapters_design_tells_main_effects_and_two_way_interactions_apart():
    design = Design(*HALF)
    assert (len(design), design.resolution) == (64, "VII")
    assert np.linalg.matrix_rank(design.model()) == 1 + 7 + 21
    assert min(len(alias) for effect in design.effects() for alias in design.aliases(*effect)) == 5


def test_the_smaller_design_keeps_main_effects_clear_of_interactions():
    design = Design(*EIGHTH)
    assert (len(design), design.resolution) == (16, "IV")
    assert all(not design.aliases(name, up_to=2) for name in design.factors)
    assert {len(design.aliases(*pair, up_to=2)) for pair in combinations(design.factors, 2)} == {2}


def test_the_quarter_keeps_what_the_page_reads_clear():
    design = Design(*QUARTER)
    assert (len(design), design.resolution) == (32, "IV")
    assert all(not design.aliases(name, up_to=2) for name in design.factors)
    clear = [pair for pair in combinations(design.factors, 2) if {SIGMOID, SVR, ALL} & {*pair}]
    assert not any(design.aliases(*pair, up_to=2) for pair in clear)


# Effects

FIFTH = Design("ABCDE", {"E": "ABCD"})
TRUE = {("A",): 0.08, ("C",): -0.03, ("A", "B"): 0.02}


def simulated(design, seed, *, seeds=3, clips=200, noise=0.02):
    """Runs with the true effects, on clips and seeds of different levels."""
    draw = np.random.default_rng(seed)
    mean = sum(size / 2 * design.contrast(*one) for one, size in TRUE.items())
    levels = draw.normal(0, 0.2, (1, 1, clips)) + draw.normal(0, 0.05, (1, seeds, 1))
    own = draw.normal(0, noise, (len(design), seeds, 1)) + draw.normal(0, 0.3, (len(design), seeds, clips))
    return 0.4 + mean[:, None, None] + levels + own


def test_without_noise_effects_are_those_that_were_put_in():
    mean = sum(size / 2 * FIFTH.contrast(*one) for one, size in TRUE.items())
    table = effects(FIFTH, mean[:, None, None] + np.zeros((len(FIFTH), 2, 3)))
    found = dict(zip(table["effect"], table["value"], strict=True))
    for one in FIFTH.effects():
        assert found[" × ".join(one)] == pytest.approx(TRUE.get(one, 0.0), abs=1e-12)


def test_an_effect_is_what_least_squares_says():
    values = simulated(FIFTH, 1)
    slopes = np.linalg.lstsq(FIFTH.model(), values.mean(axis=(1, 2)), rcond=None)[0]
    for place, one in enumerate(FIFTH.effects()):
        assert effect(FIFTH, values, *one).value == pytest.approx(2 * slopes[1 + place])


def test_intervals_hold_the_true_effect_about_as_often_as_they_say():
    held = [d.low <= 0.08 <= d.high for seed in range(200) for d in [effect(FIFTH, simulated(FIFTH, seed), "A")]]
    assert 0.9 <= np.mean(held) <= 0.99


def test_levels_of_seeds_and_clips_do_not_widen_an_effect():
    values = simulated(FIFTH, 2)
    moved = values + 10 * np.arange(values.shape[1])[None, :, None] + np.linspace(0, 9, values.shape[2])
    assert effect(FIFTH, moved, "A").half_width == pytest.approx(effect(FIFTH, values, "A").half_width)


def test_few_of_many_effects_of_nothing_stand_after_holm():
    wrong = 0
    for seed in range(40):
        table = effects(FIFTH, simulated(FIFTH, seed)).set_index("effect")
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


# The surface, the rule and the front


def test_a_surface_predicts_what_was_not_run():
    whole = Design("ABCDE")
    truth = sum(size / 2 * whole.contrast(*one) for one, size in TRUE.items())
    mean = sum(size / 2 * FIFTH.contrast(*one) for one, size in TRUE.items())
    table, error = predicted(FIFTH, mean[:, None] + np.array([[0.0, 0.3]]))
    assert table["value"].to_numpy() == pytest.approx(truth + 0.15)
    assert error == pytest.approx(0, abs=1e-12), "the level of a block is no error"


def test_errors_of_predictions_are_as_large_as_they_say():
    design, found, claimed = Design("ABCDE"), [], []
    for seed in range(150):
        noise = np.random.default_rng(seed).normal(0, 0.02, (len(design), 3))
        table = predicted(design, noise)[0]
        found.append(table["value"].to_numpy())
        claimed.append(table["error"].to_numpy())
    assert np.std(found) == pytest.approx(np.mean(claimed), rel=0.1)


def test_aliased_interactions_have_no_surface():
    with pytest.raises(ValueError, match="cannot tell"):
        predicted(Design("ABCD", {"D": "ABC"}), np.zeros((8, 2)))


def test_the_rule_takes_the_simplest_of_those_that_are_near_the_best():
    table = pd.DataFrame({"system": list("abcd"), "terms": [0, 1, 1, 3], "value": [0.3, 0.39, 0.4, 0.405]})
    assert simplest(table.assign(error=0.02)) == "c"
    assert simplest(table.assign(error=0.001)) == "d"
    assert simplest(table.assign(error=0.5)) == "a"


def test_the_front_holds_what_nothing_dominates():
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.random((40, 2)).round(1), columns=["cost", "value"])
    on = front(table)
    for row in range(40):
        beaten = any(
            table.cost[other] <= table.cost[row]
            and table.value[other] >= table.value[row]
            and (table.cost[other] < table.cost[row] or table.value[other] > table.value[row])
            for other in range(40)
        )
        assert on[row] != beaten


def test_conditional_effects_differ_by_twice_the_interaction_and_have_two_errors():
    design = science.Design("ABCDE")
    rng = np.random.default_rng(0)
    planted = np.array([0.2 * ("A" in high) + 0.1 * ({"A", "B"} <= high) for high in design.runs])
    values = planted[:, None, None] + rng.normal(0, 0.01, (len(design), 3, 20))
    table = science.conditional(design, values, "B", "no B").set_index(["reading", "effect", "beside"])["value"]
    for reading in science.READINGS:
        assert table[reading, "A", "B"] - table[reading, "A", "no B"] == pytest.approx(0.1, abs=0.01)
        both = science.effect(design, values, "A", "B").value
        assert table[reading, "A", "B"] - table[reading, "A", "no B"] == pytest.approx(2 * both)
    error, df = science.design_error(design, values)
    assert df == 16
    assert error == pytest.approx(2 * 0.01 / np.sqrt(values.size), rel=0.5)


def test_a_stand_in_splits_what_a_term_adds():
    design, rng = Design(*HALF), np.random.default_rng(0)
    runs = {experiments.label(high): rng.normal(size=(3, 20)) for high in design.runs}
    found, plain = (SimpleNamespace(values=lambda name, *_, part=part: part * runs[name]) for part in (1, 0.5))
    table = science.over_stand_ins(design, found, {"InfoNCE": plain, "the term": found}, SIGMOID, "softmax")
    whole = science.conditional(design, np.stack([*runs.values()]), SIGMOID, "softmax")
    parts, sums = (each.pivot(index=["reading", "beside"], columns="effect", values="value") for each in (table, whole))
    for term in experiments.STAND_INS:
        both = parts[f"InfoNCE for {term}"] + parts[f"{term} over that InfoNCE"]
        assert both.to_dict() == pytest.approx(sums[term].to_dict())
    assert parts.shape[1] == 4
    ours, theirs = (each.groupby("reading")["half width"].agg(set) for each in (table, whole))
    assert ours[science.READINGS[1]] == theirs[science.READINGS[1]]

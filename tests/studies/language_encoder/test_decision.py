"""The rule about when a sentence term pays: it finds what was planted, and cannot tell where there is nothing."""

from __future__ import annotations

import made_up
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pullpush.studies.language_encoder import conditions, rules
from pullpush.studies.language_encoder.decision import decide

KNOWN = ("log size", "entropy", "ten words", "uniformity before")
QUICK = {"splits": 3, "permutations": 79}


def planted(effect: float, *, count: int = 14, kind: str = "split", noise: float = 0.004, seed: int = 0):
    """Conditions with two rows each, in which one fact alone decides what a term adds."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(count):
        own = dict(zip(KNOWN, (rng.choice([2.6, 3.3]), *rng.uniform((4, 0.2, -3.5), (9, 0.7, -0.5))), strict=True))
        away = own["uniformity before"] + 2
        mean = effect * (np.sign(away) if kind == "split" else away) + rng.normal(0, noise)
        for base in ("CLAP", "CyCLAP"):
            value = mean + rng.normal(0, noise)
            numbers = {"value": value, "low": value - 2 * noise, "high": value + 2 * noise, "error": noise}
            rows.append({"condition": f"c{number}", "baseline": base, **numbers, "seeds": 3, "clips": 400, **own})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("kind", ["split", "line"])
def test_a_rule_that_was_planted_is_found(kind):
    found = decide(planted(0.02, kind=kind), KNOWN, **QUICK)
    by_rule = {one.rule: one for one in found.outcomes}
    one = by_rule["line"]
    assert one.verdict == "predicts"
    assert one.skill > 0.3
    assert one.signs > max(one.yes, one.no)
    assert one.alone > 0.5
    assert 0.5 < one.slope < 2
    assert abs(one.bias) < 0.005
    strongest = found.weights.set_index("fact")["points"].abs().idxmax()
    assert strongest == "uniformity before"
    assert found.reliable > 0.7


def test_the_rule_to_remember_names_the_fact_and_where_it_splits():
    found = decide(planted(0.02), KNOWN, **QUICK)
    fact, threshold, below, above = found.threshold
    assert fact == "uniformity before"
    assert -2.7 < threshold < -1.3
    assert below < -0.01 < 0.01 < above
    said = found.words("SimCSE")
    assert "uniformity loss of the text encoder before training is at least −" in said
    assert f"{100 * above:+.1f} points where" in said
    assert "predicts" in said


def test_noise_is_told_apart_from_a_rule():
    """Of four tables of noise and two rules each, a level of 5 % may take one for a rule, hardly two."""
    taken = [one.verdict for seed in range(4) for one in decide(planted(0.0, seed=seed), KNOWN[2:], **QUICK).outcomes]
    assert taken.count("predicts") <= 1
    nothing = decide(planted(0.0, seed=1), KNOWN[2:], **QUICK)
    assert {one.verdict for one in nothing.outcomes} == {"cannot tell"}
    assert "cannot tell" in nothing.words()


def test_a_gain_that_is_the_same_everywhere_is_no_rule():
    """Always yes has every sign right, and so has the rule: nothing is learnt about where the term pays."""
    table = planted(0.0, noise=0.001)
    found = decide(table.assign(value=table["value"] + 0.05), KNOWN, **QUICK)
    for one in found.outcomes:
        assert one.yes == one.signs == 1
        assert one.verdict == "cannot tell"


def test_predictions_of_a_condition_come_from_rules_that_never_saw_it():
    table = planted(0.02)
    before = decide(table, KNOWN, **QUICK).table
    moved = table.assign(value=table["value"].where(table["condition"] != "c3", 9.0))
    after = decide(moved, KNOWN, **QUICK).table
    held = [t[t["held out"] & (t["condition"] == "c3") & (t["rule"] == "line")]["predicted"] for t in (before, after)]
    np.testing.assert_allclose(*held)
    fitted = [
        t[~t["held out"] & (t["condition"] == "c3") & (t["rule"] == "line")]["predicted"] for t in (before, after)
    ]
    assert not np.allclose(*fitted)


def test_few_conditions_cannot_tell():
    found = decide(planted(0.02, count=5), KNOWN)
    assert not found.outcomes
    assert found.summary().empty
    assert found.words() == "**cannot tell**: 5 conditions are too few to hold half of them out."


def test_conditions_change_places_whole():
    table = planted(0.0)
    with pytest.raises(ValueError, match="average them first"):
        decide(table.iloc[1:], KNOWN, **QUICK)
    groups = np.array([0, 1, 0, 1])
    y = rules.permuted(np.array([1.0, 2.0, 10.0, 20.0]), groups, 50, np.random.default_rng(0))
    pairs = {(column[0], column[2]) for column in y.T} | {(column[1], column[3]) for column in y.T}
    assert pairs == {(1.0, 10.0), (2.0, 20.0)}


def test_errors_on_conditions_left_out_are_those_of_fitting_again():
    rng = np.random.default_rng(0)
    design, y, groups = np.column_stack([np.ones(8), rng.normal(size=(8, 2))]), rng.normal(size=8), np.arange(8) // 2
    penalty = np.diag([0.0, 1.0, 1.0])
    hat = design @ np.linalg.solve(design.T @ design + penalty, design.T)
    found = rules.left_out(hat, groups) @ y
    for group in range(4):
        rest = groups != group
        weights = np.linalg.solve(design[rest].T @ design[rest] + penalty, design[rest].T @ y[rest])
        np.testing.assert_allclose(found[~rest], y[~rest] - design[~rest] @ weights)


def test_a_split_leaves_two_conditions_on_either_side():
    facts, groups = np.arange(12.0)[:, None] // 2, np.arange(12) // 2
    fit = np.ones(12, bool)
    thresholds = [one.split[1] for one in rules.split(facts, groups, fit) if one.split]
    assert thresholds == [1.5, 2.5, 3.5]


# ---------------------------------------------------------------- what is known


def test_captions_are_known_by_their_words():
    found = conditions.caption_facts(["a dog barks", "a cat", "a dog"], 1000)
    assert found["log size"] == 3
    assert found["vocabulary"] == 4
    assert found["entropy"] == pytest.approx(stats.entropy([3, 2, 1, 1], base=2))
    assert found["ten words"] == pytest.approx(1)


def test_conditions_bring_gains_with_their_errors_and_facts():
    level = {"CLAP": 0.3, "CLAPs": 0.32, "CyCLAP": 0.31, "CyCLAPs": 0.36}
    scores = made_up.scores(level, {"world": ("a", "b")})
    points = {name: {"world": name} for name in ("a", "b", "absent")}
    pairs = [("CLAPs", "CLAP"), ("CyCLAPs", "CyCLAP")]
    table = conditions.conditions(scores, pairs, points, {"a": {"entropy": 5.0}, "b": {"entropy": 7.0}})
    assert list(table["condition"]) == ["a", "a", "b", "b"]
    assert list(table["entropy"]) == [5, 5, 7, 7]
    one = scores.contrast("CLAPs", "CLAP", "R@1", {"world": "a"})
    assert table.loc[0, "value"] == one.value
    assert table.loc[0, "error"] == pytest.approx(one.half_width / stats.t.ppf(0.975, one.df))
    empty = conditions.conditions(made_up.nothing(scores), pairs, points, {})
    assert empty.empty
    assert list(empty.columns) == conditions.COLUMNS

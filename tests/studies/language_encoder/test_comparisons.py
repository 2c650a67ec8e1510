"""Gains and their differences, and scores beside the paper's tables, on made-up scores."""

from __future__ import annotations

import made_up
import numpy as np
import pytest
from scipy import special

from pullpush.lab.experiments import ExperimentError
from pullpush.lab.paper import paper_table
from pullpush.metrics.inference import difference
from pullpush.studies.language_encoder import comparisons, gains

LEVEL = {"CLAP": 0.30, "CLAPs": 0.32, "CyCLAP": 0.31, "CyCLAPs": 0.36}
WORLDS = ("freesound", "clotho", "made")
POINTS = {world: {"world": world} for world in WORLDS}
S = [("CLAPs", "CLAP"), ("CyCLAPs", "CyCLAP")]


@pytest.fixture(scope="module")
def scores():
    return made_up.scores(
        LEVEL, {"world": WORLDS}, bonus={("CLAPs", "freesound"): 0.05, ("CyCLAPs", "freesound"): 0.05}
    )


def test_a_gain_is_that_of_the_experiment(scores):
    found = gains.gain(scores, S[0], "A2T R@1", POINTS["clotho"])
    assert found.seeds == (0, 1, 2)
    assert found.difference == scores.contrast("CLAPs", "CLAP", "A2T R@1", POINTS["clotho"])
    relative = gains.gain(scores, S[0], "A2T R@1", POINTS["clotho"], relative=True)
    assert relative.difference == scores.contrast("CLAPs", "CLAP", "A2T R@1", POINTS["clotho"], relative=True)


def test_several_pairs_and_scores_are_averaged(scores):
    both = gains.gain(scores, S, gains.RECALLS, POINTS["clotho"])
    each = [gains.gain(scores, pair, name, POINTS["clotho"]).values for pair in S for name in gains.RECALLS]
    np.testing.assert_allclose(both.values, np.mean(each, axis=0))
    assert both.difference.value == pytest.approx(0.035, abs=0.003)


def test_exchanged_a_pair_gives_how_far_a_loss_falls(scores):
    rise, fall = (gains.gain(scores, pair, "R@1", POINTS["made"]) for pair in (S[0], S[0][::-1]))
    np.testing.assert_allclose(rise.values, -fall.values)


def test_one_experiment_has_more_than_another(scores):
    more, less = (gains.gain(scores, S, where=POINTS[world]) for world in ("freesound", "clotho"))
    paired = gains.between(more, less, paired=True)
    assert paired == difference(more.values, less.values)
    assert paired.stands
    assert paired.low < 0.05 < paired.high
    apart = gains.between(more, less, paired=False)
    assert apart.value == pytest.approx(paired.value)
    assert apart.low < 0.05 < apart.high
    assert (apart.seeds, apart.clips) == (3, 400)
    assert sum(apart.variance.shares.values()) == pytest.approx(1)


def test_paired_gains_are_compared_on_the_seeds_that_both_have(scores):
    one, other = (gains.gain(scores, S[0], where=POINTS[world]) for world in ("freesound", "clotho"))
    later = gains.Gain(other.values[1:], other.seeds[1:])
    assert gains.between(one, later, paired=True) == difference(one.values[1:], other.values[1:])
    with pytest.raises(ExperimentError, match="share no seed"):
        gains.between(one, gains.Gain(other.values, (7, 8, 9)), paired=True)


def test_a_gain_of_what_was_not_kept_says_so(scores):
    with pytest.raises(ExperimentError, match="share no seed"):
        gains.gain(made_up.nothing(scores), S[0], where=POINTS["clotho"])


def test_two_experiments_apart_differ_as_welch_says():
    """One number a seed: then this is Welch's test."""
    one, other = [[1.0], [2.0], [4.0]], [[0.0], [0.5], [0.1], [0.2]]
    found = gains.unpaired(one, other)
    a, b = np.ravel(one), np.ravel(other)
    parts = np.array([a.var(ddof=1) / 3, b.var(ddof=1) / 4])
    df = parts.sum() ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert found.df == pytest.approx(df)
    assert found.half_width == pytest.approx(special.stdtrit(df, 0.975) * np.sqrt(parts.sum()))
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
    assert gains.unpaired(other, one).value == pytest.approx(-found.value)


def test_nothing_varies_and_nothing_differs():
    same = gains.unpaired(np.ones((2, 3)), np.ones((2, 4)))
    assert (same.value, same.half_width, same.p) == (0, 0, 1)
    assert gains.unpaired(np.ones((2, 3)), np.zeros((2, 4))).p == 0


@pytest.mark.parametrize(("seeds", "clips"), [((3, 3), (40, 300)), ((5, 3), (200, 100))])
def test_intervals_of_independent_differences_hold_the_truth_as_often_as_they_say(seeds, clips):
    rng, covered, draws = np.random.default_rng(0), 0, 300

    def drawn(rows: int, columns: int) -> np.ndarray:
        part = rng.normal(0, 0.3, (rows, 1)) + rng.normal(0, 2, (1, columns))
        return part + rng.normal(0, 2, (rows, columns))

    for _ in range(draws):
        found = gains.unpaired(*(drawn(*size) for size in zip(seeds, clips, strict=True)))
        covered += found.low <= 0 <= found.high
    assert 0.92 <= covered / draws <= 0.985


@pytest.mark.parametrize(
    ("system", "base"), [("CLAPs", "CLAP"), ("CyCLIPe", "CyCLIP"), ("CyCLAP", "CLAP"), ("CLIP", "")]
)
def test_a_system_without_its_last_term(system, base):
    assert gains.base_of(system) == base


# ---------------------------------------------------------------- tables


def test_gains_at_points_have_the_papers_beside_them(scores):
    table = comparisons.gains(scores, S, POINTS, ["R@1", "A2T R@1"], table=4)
    assert len(table) == 2 * 3 * 2
    row = table.query("system == 'CLAPs' and point == 'freesound' and metric == 'A2T R@1'").iloc[0]
    assert row["paper"] == pytest.approx(0.0597 - 0.0554)
    both = table.query("system == 'CLAPs' and point == 'freesound' and metric == 'R@1'").iloc[0]
    assert both["paper"] == pytest.approx((0.0597 - 0.0554 + 0.0609 - 0.0571) / 2)
    assert table[table["point"] == "made"]["paper"].isna().all()
    one = scores.contrast("CLAPs", "CLAP", "A2T R@1", POINTS["freesound"])
    assert (row["value"], row["half width"]) == (one.value, one.half_width)
    assert row["p"] >= one.p, "Holm"


def test_points_that_were_not_trained_are_left_out(scores):
    table = comparisons.gains(scores, [*S, ("CLAPn", "CLAP")], {**POINTS, "absent": {"world": "absent"}})
    assert set(table["point"]) == set(WORLDS)
    assert set(table["system"]) == {"CLAPs", "CyCLAPs"}
    assert comparisons.gains(made_up.nothing(scores), S, POINTS).empty


@pytest.mark.parametrize("table", comparisons.PRINTED)
def test_every_cell_that_is_named_is_printed(table):
    """Of each system of the paper's table, in each block, unless the paper left it out."""
    where, look_up = comparisons.PRINTED[table], comparisons.printed(table)
    for system in paper_table("language_encoder", table)["system"].unique():
        for block in where.blocks:
            for metric in where.cells:
                value, _ = look_up(block, system, metric)
                assert 0 < value < 100, (system, block, metric)


def test_scores_stand_beside_the_papers(scores):
    table = comparisons.beside_paper(scores, 12, {"clotho": POINTS["clotho"], "made": POINTS["made"]})
    assert list(table["metric"].unique()) == list(gains.RECALLS)
    assert set(table["system"]) == set(LEVEL)
    row = table.query("block == 'clotho' and system == 'CyCLAP' and metric == 'A2T R@1'").iloc[0]
    printed = paper_table("language_encoder", 12).query("dataset == 'Clotho' and task == 'A2T' and metric == 'R@1'")
    printed = printed.set_index("system")
    assert row["over"] == "CLAP"
    assert row["paper"] == pytest.approx(printed.loc["CyCLAP", "value"])
    assert row["paper std"] == pytest.approx(printed.loc["CyCLAP", "std"])
    assert row["paper gain"] == pytest.approx(printed.loc["CyCLAP", "value"] - printed.loc["CLAP", "value"])
    one = scores.contrast("CyCLAP", "CLAP", "A2T R@1", POINTS["clotho"])
    assert (row["gain"], row["half width"]) == pytest.approx((100 * one.value, 100 * one.half_width))
    plain = table[table["system"] == "CLAP"]
    assert plain["over"].eq("").all()
    assert plain["gain"].isna().all()
    assert table[table["block"] == "made"]["paper"].isna().all()


def test_a_table_to_print_has_a_row_for_us_and_one_for_the_paper(scores):
    table = comparisons.beside_paper(scores, 4, {"clotho": POINTS["clotho"], "made": POINTS["made"]})
    shown = comparisons.readable(table)
    assert list(shown.columns) == ["data", "system", "", *gains.RECALLS]
    clotho = shown[shown["data"] == "clotho"]
    assert list(clotho[""]) == ["here", "paper"] * 4
    assert clotho.query("system == 'CLAPs'")["A2T R@1"].iloc[1] == "13.49, −0.39"
    assert "±" in clotho.query("system == 'CLAPs'")["A2T R@1"].iloc[0]
    assert "±" not in clotho.query("system == 'CLAP'")["A2T R@1"].iloc[0]
    assert set(shown[shown["data"] == "made"][""]) == {"here"}
    alone = comparisons.readable(table[table["block"] == "clotho"])
    assert "data" not in alone


def test_nothing_kept_gives_empty_tables(scores):
    table = comparisons.beside_paper(made_up.nothing(scores), 4, POINTS)
    assert table.empty
    assert comparisons.readable(table).empty


def test_levels_are_means_with_intervals_and_two_of_them_a_place(scores):
    table = comparisons.levels(scores, ["R@1", "A2T R@5"], POINTS)
    assert len(table) == 3 * 4 * 2
    row = table.query("point == 'made' and system == 'CyCLAPs' and metric == 'R@1'").iloc[0]
    one = difference(scores.values("CyCLAPs", "R@1", POINTS["made"]))
    assert (row["value"], row["low"], row["high"]) == (one.value, one.low, one.high)
    places = comparisons.places(table, "R@1", "A2T R@5").set_index(["point", "system"])
    place = places.loc["made", "CyCLAPs"]
    assert (place["x"], place["x low"], place["x high"]) == (one.value, one.low, one.high)
    assert place["y"] == pytest.approx(scores.values("CyCLAPs", "A2T R@5", POINTS["made"]).mean())
    assert (place["seeds"], place["clips"]) == (3, 400)
    assert comparisons.levels(made_up.nothing(scores), ["R@1"], POINTS).empty

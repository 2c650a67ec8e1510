"""Scores beside the paper's tables, on made-up scores."""

import made_up
import pytest

from pullpush.lab.comparisons import levels
from pullpush.lab.paper import paper_table
from pullpush.metrics.inference import difference
from pullpush.studies.language_encoder import comparisons

LEVEL = {"CLAP": 0.30, "CLAPs": 0.32, "CyCLAP": 0.31, "CyCLAPs": 0.36}
WORLDS = ("freesound", "clotho", "made")
POINTS = {world: {"world": world} for world in WORLDS}


@pytest.fixture(scope="module")
def scores():
    return made_up.scores(
        LEVEL, {"world": WORLDS}, bonus={("CLAPs", "freesound"): 0.05, ("CyCLAPs", "freesound"): 0.05}
    )


@pytest.mark.parametrize("table", comparisons.PRINTED)
def test_every_cell_that_is_named_is_printed(table):
    """Of each system of the paper's table, in each block, unless the paper left it out."""
    cells, points = comparisons.PRINTED[table]
    for system in paper_table("language_encoder", table)["system"].unique():
        for point in points:
            for metric in cells:
                value, _ = comparisons.printed(table, point, system, metric)
                assert 0 < value < 100, (system, point, metric)


def test_scores_stand_beside_the_papers(scores):
    table = comparisons.beside_paper(scores, 12, {"clotho": POINTS["clotho"], "made": POINTS["made"]})
    assert list(table["metric"].unique()) == list(comparisons.RECALLS)
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
    assert list(shown.columns) == ["data", "system", "", *comparisons.RECALLS]
    clotho = shown[shown["data"] == "clotho"]
    assert list(clotho[""]) == ["here", "paper"] * 4
    assert clotho.query("system == 'CLAPs'")["A2T R@1"].iloc[1] == "13.49, −0.39"
    assert "±" in clotho.query("system == 'CLAPs'")["A2T R@1"].iloc[0]
    assert "±" not in clotho.query("system == 'CLAP'")["A2T R@1"].iloc[0]
    assert set(shown[shown["data"] == "made"][""]) == {"here"}
    alone = comparisons.readable(table[table["block"] == "clotho"])
    assert "data" not in alone


def test_two_levels_are_a_place(scores):
    table = levels(scores, ["R@1", "A2T R@5"], POINTS)
    place = comparisons.places(table, "R@1", "A2T R@5").set_index(["point", "system"]).loc["made", "CyCLAPs"]
    one = difference(scores.values("CyCLAPs", "R@1", POINTS["made"]))
    assert (place["x"], place["x low"], place["x high"]) == (one.value, one.low, one.high)
    assert place["y"] == pytest.approx(scores.values("CyCLAPs", "A2T R@5", POINTS["made"]).mean())
    assert (place["seeds"], place["clips"]) == (3, 400)

"""The papers' numbers and the closing table."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from pullpush.errors import DataNotFoundError
from pullpush.lab.paper import Claim, claim_numbers, decimals, paper_table, verdict_table
from pullpush.lab.root import find_root

COLUMNS = ["paper", "table", "system", "dataset", "task", "language", "metric", "value", "std", "unit", "note"]
TABLES = sorted((find_root() / "book" / "paper-tables").glob("*.csv"))


def test_a_number_of_the_paper_is_found():
    table = paper_table("supclap", 1)
    row = table.query("system == 'InfoNCE' and dataset == 'AudioCaps' and metric == 'R@1' and task == 'T2A'")
    assert (row["value"] > 0).all()
    assert (row["value"] < 100).all()


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_table_is_tidy_and_says_where_it_is_from(path):
    paper, number = re.fullmatch(r"(\w+)_table(\d+)", path.stem).groups()
    table = paper_table(paper, int(number))
    assert list(table.columns) == COLUMNS
    assert (table["paper"] == paper).all()
    assert (table["table"] == int(number)).all()
    assert len(table)


def test_a_table_that_is_not_there_gets_a_list_of_those_that_are(tmp_path):
    with pytest.raises(DataNotFoundError, match="supclap_table1"):
        paper_table("supclap", 99)
    with pytest.raises(DataNotFoundError, match="known: none"):
        paper_table("supclap", 1, folder=tmp_path)


def test_a_difference_stands_where_both_sides_are_numbers():
    table = verdict_table(
        [
            Claim("a", 41.9, 40.0, "near", (38.0, 42.0)),
            Claim("b", "yes", 0.98765, "confirmed"),
            Claim("c", 0.5, "not measured", "open"),
        ]
    )
    assert list(table.columns) == ["claim", "paper", "ours", "difference", "verdict"]
    assert table["ours"].tolist() == ["40.0 [38.0, 42.0]", "0.988", "not measured"]
    assert table["paper"].tolist() == ["41.9", "yes", "0.5"]
    assert table["difference"].tolist() == ["-1.9", "–", "–"]


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, int, np.int64])
def test_numbers_of_every_kind_are_numbers(kind):
    row = verdict_table([Claim("a", kind(3), kind(5), "more", (kind(4), kind(6)))]).iloc[0]
    assert row["ours"] == "5.0 [4.0, 6.0]"
    assert row["difference"] == "+2.0"


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(-40, 40, 1), (0.4, 2.0, 1), (0.50, 0.58, 2), (0.001, 0.0018, 4), (0, 1e-9, 4), (1, 1, 3)],
)
def test_an_interval_tells_how_many_decimals_a_number_deserves(low, high, digits):
    assert decimals(low, high) == digits


def test_claims_with_intervals_are_numbers_to_draw():
    claims = [
        Claim("a", 1.5, 2.0, "yes", (1, 3)),
        Claim("b", "higher", 0.5, "no", (-1, 2)),
        Claim("c", 1.0, 2.0, "yes"),
    ]
    table = claim_numbers(claims)
    assert table["claim"].tolist() == ["a", "b"]
    assert table["value"].tolist() == [2.0, 0.5]
    assert table["paper"].isna().tolist() == [False, True]
    assert claim_numbers([]).empty


def test_no_claims_no_rows():
    assert isinstance(verdict_table([]), pd.DataFrame)

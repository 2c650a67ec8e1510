"""The papers' numbers, and how measured ones are written."""

import re

import pytest

from pullpush.errors import DataNotFoundError
from pullpush.lab.paper import decimals, paper_table
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


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(-40, 40, 1), (0.4, 2.0, 1), (0.50, 0.58, 2), (0.001, 0.0018, 4), (0, 1e-9, 4), (1, 1, 3)],
)
def test_an_interval_tells_how_many_decimals_a_number_deserves(low, high, digits):
    assert decimals(low, high) == digits

"""What moved between two executions: tables by cells, claims by verdict and number; seconds are of the machine."""

from pathlib import Path

import pandas as pd
import pytest

from pullpush.site import publish as moved


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("fresh", "published"):
        (tmp_path / name).mkdir()
    return tmp_path / "fresh", tmp_path / "published"


def write(folder: Path, name: str, **columns: list) -> None:
    pd.DataFrame(columns).to_csv(folder / name, index=False, float_format="%.6g")


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ({"x": [1.0, 2.0]}, {"x": [1.000009, 2.0]}, ""),
        ({"x": [1.0, 2.0]}, {"x": [1.0, 2.0001]}, "1 of 2 cells moved, first in row 2, x: 2 → 2.0001"),
        ({"x": [1e-14]}, {"x": [3e-15]}, ""),
        ({"x": [None, 1.0]}, {"x": [None, 1.0]}, ""),
        ({"x": [None, 1.0]}, {"x": [0.5, 1.0]}, "first in row 1, x: nan → 0.5"),
        ({"x": ["holds", None]}, {"x": ["holds", None]}, ""),
        ({"x": ["holds", "holds"]}, {"x": ["holds", None]}, "first in row 2, x: holds → nan"),
        ({"x": ["holds"]}, {"x": ["cannot tell"]}, "first in row 1, x: holds → cannot tell"),
        ({"x": [10, 20]}, {"x": ["10.0", "none"]}, "1 of 2 cells moved, first in row 2, x: 20 → none"),
        ({"x": []}, {"x": []}, ""),
        ({"x": [1]}, {"x": [1, 2]}, "has 2 rows in place of 1"),
        ({"x": [1]}, {"y": [1]}, "has the columns y in place of x"),
        ({"x": [True]}, {"x": [False]}, "first in row 1, x: True → False"),
        ({"system": ["a"], "time": [1.0]}, {"system": ["a"], "time": [1.3]}, ""),
        ({"system": ["a"], "time": [1.0]}, {"system": ["a"]}, "has the columns system in place of system, time"),
    ],
)
def test_tables_move_where_a_number_a_text_or_their_form_is_another(sides, before, after, how):
    fresh, published = sides
    write(published, "01-x.results.csv", **before)
    write(fresh, "01-x.results.csv", **after)
    found = moved.tables(fresh, published, ["01-x"])
    assert [one.name for one in found] == (["01-x.results.csv"] if how else [])
    assert all(how in one.how for one in found)


def test_tables_that_one_side_has_are_named_and_those_of_other_pages_are_not(sides):
    fresh, published = sides
    write(fresh, "01-x.more.csv", x=[1])
    write(published, "01-x.less.csv", x=[1])
    write(published, "01-x-lab.results.csv", x=[1])
    assert moved.tables(fresh, published, ["01-x"]) == [("01-x.less.csv", "is gone"), ("01-x.more.csv", "is new")]


def test_tables_of_seconds_are_named(sides):
    fresh, _ = sides
    write(fresh, "07-x.costs.csv", system=["a"], time=[1.0])
    write(fresh, "07-x.results.csv", system=["a"], timely=[1.0])
    assert moved.timed(fresh, ["07-x"]) == ["07-x.costs.csv"]


def test_claims_move_by_verdict_by_number_or_by_being_there(sides):
    fresh, published = sides
    columns = {"id": ["a", "b", "c", "d"], "verdict": ["holds", "holds", "cannot tell", "holds"]}
    write(published, "01-x.claims.csv", **columns, value=[1.0, 2.0, None, 4.0])
    columns = {"id": ["a", "b", "c", "e"], "verdict": ["holds", "cannot tell", "cannot tell", "holds"]}
    write(fresh, "01-x.claims.csv", **columns, value=[1.5, 2.0, None, 4.0])
    assert moved.claims(fresh, published, "01-x") == [
        ("a", "holds as before, 1 → 1.5"),
        ("b", "holds → cannot tell"),
        ("d", "is gone"),
        ("e", "is new"),
    ]
    assert moved.claims(fresh, published, "02-none") == []

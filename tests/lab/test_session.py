"""A session fixes the seeds, knows its size and where its tables go."""

import random
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from pullpush.lab import session


def test_a_seed_fixes_python_numpy_and_torch(tmp_path):
    def draw(seed):
        session.start("c", "smoke", seed, out=tmp_path)
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    assert draw(3) == draw(3)
    assert not set(draw(3)) & set(draw(4))


def test_tables_have_six_digits_and_no_index(tmp_path):
    book = session.start("01-x", "smoke", out=tmp_path)
    book.save(pd.DataFrame({"a": [1 / 3, 2e-9], "b": ["é", "x"]}, index=[7, 8]))
    book.save(pd.DataFrame({"a": [1]}), "more-of_it")
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["01-x.more-of_it.csv", "01-x.results.csv"]
    assert (tmp_path / "01-x.results.csv").read_text(encoding="utf-8") == "a,b\n0.333333,é\n2e-09,x\n"


@pytest.mark.parametrize("name", ["", "../out", "a b", "a.csv"])
def test_a_name_that_is_no_plain_name_is_refused(tmp_path, name):
    book = session.start("01-x", "smoke", out=tmp_path)
    with pytest.raises(ValueError, match="name of a table"):
        book.save(pd.DataFrame({"a": [1]}), name)
    assert not list(tmp_path.iterdir())


def test_tables_go_where_the_run_says_and_else_into_the_book(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_OUT", str(tmp_path / "run"))
    assert session.start("c", "smoke").out == tmp_path / "run"
    monkeypatch.delenv("PULLPUSH_OUT")
    book = session.start("c", "smoke")
    assert book.out == tiny / "executed" / "local"
    assert book.out.is_dir()


def test_only_a_published_page_is_kept_free_of_warnings(tmp_path, monkeypatch):
    for value, quiet in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("PULLPUSH_PUBLISH", value)
        assert session.published() is quiet
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session.start("c", "smoke", out=tmp_path)
            warnings.warn("noise", stacklevel=1)
        assert (not caught) is quiet

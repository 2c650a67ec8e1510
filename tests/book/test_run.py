"""Running a chapter leaves all of it or nothing."""

from __future__ import annotations

import nbformat
import pandas as pd
import pytest

from pullpush.book import chapters
from pullpush.book.run import ChapterError, describe, run, why_stale
from pullpush.errors import UnknownNameError


def test_a_run_leaves_the_notebook_and_its_table(tiny):
    done = run("10-tiny", profile="smoke", parameters={"tau": "0.5"})
    assert done.notebook == tiny / "executed" / "smoke" / "10-tiny.ipynb"
    assert pd.read_csv(done.tables[0]).to_dict("records") == [{"double": 1.0, "epochs": 2}]
    about = describe(done.notebook)
    assert about["parameters"] == {"tau": 0.5, "profile": "smoke"}
    assert "noise" in done.stderr
    text = done.notebook.read_text(encoding="utf-8")
    assert "noise" not in "".join(str(c.get("outputs")) for c in nbformat.reads(text, 4).cells)
    assert str(tiny) not in text, "a machine's path in a published notebook"
    assert [path.name for path in (tiny / "executed").iterdir()] == ["smoke"]


def test_a_failed_run_keeps_what_was_published_and_shows_the_error(tiny):
    published = run("10-tiny").notebook
    before = published.read_bytes()
    with pytest.raises(ChapterError, match="AssertionError: asked to break") as caught:
        run("10-tiny", parameters={"name": "broken"})
    assert published.read_bytes() == before
    assert caught.value.notebook == tiny / "executed" / "failed" / "quick" / "10-tiny.ipynb"
    assert "asked to break" in caught.value.notebook.read_text()


def test_an_execution_is_stale_when_its_source_or_its_parameters_differ(tiny):
    chapter = chapters.find(tiny, "10-tiny")
    notebook = tiny / "executed" / "quick" / "10-tiny.ipynb"
    assert "has not been run" in why_stale(notebook, chapter)
    run("10-tiny")
    assert why_stale(notebook, chapter) is None
    run("10-tiny", parameters={"tau": 1.0})
    assert "tau=1.0" in why_stale(notebook, chapter)
    run("10-tiny")
    chapter.path.write_text(chapter.path.read_text().replace("2 * tau", "3 * tau"))
    assert "has changed" in why_stale(notebook, chapter)


def test_unknown_names_are_refused_before_anything_runs(tiny):
    with pytest.raises(UnknownNameError, match="did you mean 'quick'"):
        run("10-tiny", profile="quik")
    with pytest.raises(UnknownNameError, match="did you mean 'tau'"):
        run("10-tiny", parameters={"tua": 1})
    assert not (tiny / "executed").exists()

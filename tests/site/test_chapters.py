"""Chapters and their parameters."""

import json
import os
import re

import nbformat
import pytest
from jupytext.config import load_jupytext_config
from miniature import ROOT

from pullpush.errors import DataNotFoundError
from pullpush.site import chapters


def test_a_page_that_is_not_there_is_named(tiny):
    toc = tiny / "book" / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: 11-gone\n")
    with pytest.raises(DataNotFoundError, match="11-gone"):
        chapters.chapters(tiny)


def test_parameters_come_with_their_defaults(tiny):
    found = chapters.parameters(chapters.find(tiny, "10-tiny"))
    assert found == {"profile": "quick", "seed": 0, "tau": 0.07, "name": "a", "loud": False, "rates": [1, 2]}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seed", "3", 3),
        ("tau", "0.2", 0.2),
        ("tau", "1", 1.0),
        ("loud", "true", True),
        ("loud", "no", False),
        ("rates", "[3, 4]", [3, 4]),
        ("name", "7", "7"),
    ],
)
def test_texts_take_the_type_of_the_default(tiny, name, text, value):
    got = chapters.check_parameters(chapters.find(tiny, "10-tiny"), {name: text})[name]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(("name", "text"), [("seed", "1.5"), ("seed", "x"), ("tau", "warm"), ("loud", "maybe")])
def test_a_value_of_the_wrong_type_is_refused(tiny, name, text):
    with pytest.raises(chapters.ParameterError, match=f"parameter '{name}' must be"):
        chapters.check_parameters(chapters.find(tiny, "10-tiny"), {name: text})


def test_only_literals_are_parameters(tiny):
    path = tiny / "book" / "10-tiny.md"
    path.write_text(path.read_text().replace("seed = 0", "seed = max(0, 1)"))
    with pytest.raises(chapters.ParameterError, match="literals"):
        chapters.parameters(chapters.find(tiny, "10-tiny"))


def test_the_hash_follows_the_cells_and_nothing_else(tiny):
    chapter = chapters.find(tiny, "10-tiny")
    before = chapters.source_hash(chapter)
    text = chapter.path.read_text()
    chapter.path.write_text(text.replace("display_name: Python 3", "display_name: Another"))
    assert chapters.source_hash(chapter) == before
    chapter.path.write_text(text.replace("# Tiny", "# Small"))
    assert chapters.source_hash(chapter) != before


# For JupyterLab


def test_the_pages_for_the_lab_cite_in_words_link_to_notebooks_and_hide_the_code_of_solutions(tmp_path):
    folder = tmp_path / "lab"
    chapters.write_for_lab(ROOT, folder)
    found = {path.stem: nbformat.read(path, as_version=4) for path in folder.glob("*.ipynb")}
    quiet = json.loads((folder / chapters.SETTINGS / "overrides.json").read_text())
    assert quiet["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert all("jupytext" not in book.metadata for book in found.values())
    assert load_jupytext_config(str(folder / "02-svr.ipynb")).formats == ["ipynb"]
    assert found.keys() == {chapter.name for chapter in chapters.chapters(ROOT)}
    text = "\n".join(cell.source for book in found.values() for cell in book.cells if cell.cell_type == "markdown")
    assert not re.search(r"\{(?:cite|term)", text)
    assert "(Luo et al., 2025)" in text
    links = re.findall(r"\]\(([\w-]+\.(?:md|ipynb))[)#]", text)
    assert links
    assert all((folder / link).is_file() for link in links)
    cells = found["02-svr"].cells
    starts = [place for place, cell in enumerate(cells) if "{solution-start}" in cell.source]
    assert len(starts) > 1
    assert all(cells[start + 1].metadata["jupyter"] == {"source_hidden": True} for start in starts)
    assert ":::{math}\n:enumerator: 2.1\n" in text
    assert "$$\n" not in text
    assert "solution-end" not in text
    assert all("jupyter" not in cell.metadata for cell in cells if "parameters" in cell.metadata.get("tags", []))


def test_a_readers_notebook_stays_until_its_page_changes_and_is_then_put_aside(tiny):
    folder, page = tiny / "lab", tiny / "book" / "10-tiny.md"
    chapters.write_for_lab(tiny, folder)
    notebook = folder / "10-tiny.ipynb"
    notebook.write_text("mine")
    chapters.write_for_lab(tiny, folder)
    assert notebook.read_text() == "mine"
    later = notebook.stat().st_mtime + 10
    os.utime(page, (later, later))
    chapters.write_for_lab(tiny, folder)
    assert (folder / "10-tiny.before.ipynb").read_text() == "mine"
    assert nbformat.read(notebook, as_version=4).cells

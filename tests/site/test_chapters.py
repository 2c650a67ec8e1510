"""Chapters and their parameters."""

from __future__ import annotations

import pytest

from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.site import chapters


def test_an_unknown_chapter_gets_the_nearest(tiny):
    with pytest.raises(UnknownNameError, match="did you mean '10-tiny'"):
        chapters.find(tiny, "10-tinny")


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

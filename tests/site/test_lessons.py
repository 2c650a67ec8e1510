"""Every chapter has one form: a lesson teaches and its lab measures the rest.

A lesson is read in fifteen minutes: few cells, short, most of them visible; the method in plain torch, held against the
library; exercises with solutions. In both, figures and equations are numbered as the reader meets them.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import jupytext
import pytest
from nbformat import NotebookNode

from pullpush.losses import plain
from pullpush.show.captions import NUMBER, anchor
from pullpush.site import chapters

ROOT = Path(__file__).resolve().parents[2]
PAGES = [chapter.path for chapter in chapters.chapters(ROOT)]
LESSONS = [page for page in PAGES if not page.stem.endswith("-lab")]
LABS = [page for page in PAGES if page.stem.endswith("-lab")]
METHODS = [page for page in LESSONS if not page.stem.startswith(("00-", "08-"))]  # those are about data
PLAIN = [
    function for _, function in inspect.getmembers(plain, inspect.isfunction) if function.__module__ == plain.__name__
]


LINES = 14  # of a cell
SETUP_LINES = 24  # of a cell of imports
CELLS = 20  # of code in a lesson, its solutions apart
HIDDEN_IN_LESSON, HIDDEN_IN_LAB = 1 / 3, 2 / 3
EXERCISES = 3  # of a lesson, at least
BODY = 8  # lines of a plain version below its docstring

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
every_lesson = pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)


# What a page holds


class Shown(NamedTuple):
    """A call of `figure` in a cell: its arguments as far as they are typed."""

    number: str
    alt: bool
    caption: bool


def cells_of(page: Path) -> list[NotebookNode]:
    return jupytext.read(page).cells


def code(cells: Iterable[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in cells if cell.cell_type == "code"]


def prose(cells: Iterable[NotebookNode]) -> str:
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def taught(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells above the exercises."""
    heads = [row for row, cell in enumerate(cells) if re.search(r"^## Exercises$", cell.source, re.MULTILINE)]
    return cells[: heads[0]] if heads else cells


def is_setup(cell: NotebookNode) -> bool:
    """Whether it imports, and teaches nothing."""
    return "setup" in cell.metadata.get("tags", [])


def is_hidden(cell: NotebookNode) -> bool:
    return any(tag.startswith(("hide-", "remove-")) for tag in cell.metadata.get("tags", []))


SECOND = {"00-ears": "E", "02-mechanism": "M"}  # further lessons of a chapter, and the letter that their numbers bear


def calls(source: str, *names: str) -> Iterator[ast.Call]:
    """Calls of functions by what is written before the bracket, in the order of the text."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    found = [node for node in found if ast.unparse(node.func) in names]
    return iter(sorted(found, key=lambda node: (node.lineno, node.col_offset)))


# What shows a figure, and its first arguments; the last one has caption and alternative text of its own.
SHOWING = {
    "figure": ("fig", "number", "caption"),
    "page.figure": ("fig", "number", "caption"),
    "page.table": ("name", "scores", "metrics"),
    "page.every_claim": ("number",),
}


def shown(source: str) -> list[Shown]:
    """The figures of a cell."""
    figures = []
    for call in calls(source, *SHOWING):
        name = ast.unparse(call.func)
        given = dict(zip(SHOWING[name], call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords}
        if name in ("page.table", "page.every_claim") and "number" not in given:
            continue  # a table without a figure
        number = given.get("number")
        typed = number.value if isinstance(number, ast.Constant) else f"not a literal: {ast.unparse(call)}"
        own = name == "page.every_claim"
        figures.append(Shown(typed, own or "alt" in given, own or "caption" in given))
    return figures


SHARED = (
    "forces_by_term",
    "term_forces.forces_by_term",
    "curves",
    "curves.word_frequencies",
    "intervals",
    "claim_forest",
    "layout.finish",
    "panels",
)  # figures that all chapters draw, and what a cell begins one of its own with


def drawn(source: str) -> int:
    """How many figures a cell makes: those of a study, of SHARED, and a page's own."""
    made = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    of_study = [
        func for func in made if isinstance(func, ast.Attribute) and ast.unparse(func.value) in ("figures", "plots")
    ]
    of_study += calls(source, *SHARED)
    by_page = [call for call in calls(source, "page.table", "page.every_claim") if shown(ast.unparse(call))]
    return len(of_study) + len(by_page)


def tags(text: str) -> list[str]:
    return re.findall(r"\\tag\{([^}]*)\}", text)


def expected(page: Path, count: int) -> list[str]:
    """The numbers of a page: "2.1" in lesson 02, "2L.1" in its lab, "0E.1" on the page 00-ears."""
    second = "L" if page.stem.endswith("-lab") else SECOND.get(page.stem, "")
    return [f"{int(page.stem[:2])}{second}.{number}" for number in range(1, count + 1)]


def imported(cells: Iterable[NotebookNode]) -> set[str]:
    """Full names of what the cells import."""
    nodes = [node for cell in code(cells) for node in ast.walk(ast.parse(cell.source))]
    return {f"{node.module}.{item.name}" for node in nodes if isinstance(node, ast.ImportFrom) for item in node.names}


def shows(cells: Iterable[NotebookNode], function: object) -> bool:
    """Whether a visible cell holds the source of a function, word for word."""
    source = inspect.getsource(function).strip()
    return any(source in cell.source for cell in code(cells) if not is_hidden(cell))


def exercises(text: str) -> list[str]:
    return re.findall(r"^`{3,}\{exercise(?:-start)?\}[^\n]*\n:label: (\S+)", text, re.MULTILINE)


def solutions(text: str) -> list[str]:
    return re.findall(r"^`{3,}\{solution(?:-start)?\} (\S+)", text, re.MULTILINE)


# The form


def test_every_lab_follows_its_lesson():
    names = [page.stem for page in PAGES]
    for page in LABS:
        assert names[names.index(page.stem) - 1] == page.stem.removesuffix("-lab")


@every_page
def test_cells_are_short(page):
    limits = ((cell, SETUP_LINES if is_setup(cell) else LINES) for cell in code(cells_of(page)))
    long = [cell.source for cell, limit in limits if len(cell.source.splitlines()) > limit]
    assert not long, "\n\n".join(long)


@every_lesson
def test_a_lesson_has_few_cells_and_most_are_visible(page):
    found = [cell for cell in code(taught(cells_of(page))) if not is_setup(cell)]
    assert len(found) <= CELLS
    assert sum(map(is_hidden, found)) <= HIDDEN_IN_LESSON * len(found)


@pytest.mark.parametrize("page", LABS, ids=lambda page: page.stem)
def test_a_third_of_a_lab_is_visible(page):
    found = code(taught(cells_of(page)))
    assert sum(map(is_hidden, found)) <= HIDDEN_IN_LAB * len(found)


# Methods


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_a_lesson_shows_its_method_in_plain_torch_and_holds_it_against_the_library(page):
    cells = taught(cells_of(page))
    assert any(name.startswith(("pullpush.losses", "pullpush.forces")) for name in imported(cells))
    assert any(shows(cells, function) for function in PLAIN)
    visible = [cell.source for cell in code(cells) if not is_hidden(cell)]
    assert any("torch.testing.assert_close(" in source for source in visible)


@pytest.mark.parametrize("function", PLAIN, ids=lambda function: function.__name__)
def test_every_plain_version_is_short_and_shown_in_a_lesson(function):
    assert any(shows(cells_of(page), function) for page in METHODS)
    (definition,) = ast.parse(inspect.getsource(function)).body
    body = definition.body[1:]  # below the docstring
    assert body[-1].end_lineno - body[0].lineno < BODY


# Figures


@every_page
def test_figures_are_numbered_as_the_reader_meets_them(page):
    found = [figure for cell in code(cells_of(page)) for figure in shown(cell.source)]
    assert [figure.number for figure in found] == expected(page, len(found))


@every_page
def test_every_figure_has_a_caption_and_an_alt_text(page):
    for cell in code(cells_of(page)):
        assert all(figure.alt and figure.caption for figure in shown(cell.source)), cell.source
        assert drawn(cell.source) == len(shown(cell.source)), cell.source


@every_page
def test_text_follows_every_figure(page):
    cells = cells_of(page)
    kinds = ["figure" if cell.cell_type == "code" and shown(cell.source) else cell.cell_type for cell in cells]
    met = [kind for kind in kinds if kind != "code"]
    pairs = list(zip(met, [*met[1:], "end"], strict=True))
    assert ("figure", "figure") not in pairs
    assert ("figure", "end") not in pairs


@every_page
def test_links_to_figures_lead_to_the_figure_that_they_name(page):
    cells = cells_of(page)
    anchors = {anchor(figure.number) for cell in code(cells) for figure in shown(cell.source)}
    for text, target in re.findall(r"\[([^\]]*)\]\(#(fig-[^)]*)\)", prose(cells)):
        assert target in anchors, f"{page.name} has no {target}"
        number = NUMBER.search(text)
        assert number is None or anchor(number[0]) == target, f"[{text}] leads to {target}"


@every_page
def test_no_number_of_seeds_is_typed_in_a_caption(page):
    typed = [cell.source for cell in code(cells_of(page)) if re.search(r"(?<![{\w])\d+ seeds", cell.source)]
    assert not typed, "\n\n".join(typed)


# Equations


@every_page
def test_equations_are_numbered_as_the_reader_meets_them(page):
    text = prose(cells_of(page))
    displayed = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    untagged = [equation for equation in displayed if not tags(equation)]
    assert not untagged, "\n".join(untagged)
    assert tags(text) == expected(page, len(tags(text)))


@every_page
def test_equations_that_are_referred_to_exist(page):
    every = {tag for other in PAGES for tag in tags(prose(cells_of(other)))}
    text = "\n".join(cell.source for cell in cells_of(page))
    for reference in re.findall(r"equations? \((\d+[A-Z]?\.\d+)\)", text, re.IGNORECASE):
        assert reference in every, f"{page.name} refers to equation ({reference})"


# Exercises


@every_page
def test_every_exercise_has_a_solution(page):
    text = prose(cells_of(page))
    assert sorted(exercises(text)) == sorted(solutions(text))
    assert text.count("{solution-start}") == text.count("{solution-end}")
    assert len(exercises(text)) >= (EXERCISES if page in LESSONS else 1)


def test_labels_of_exercises_are_unique():
    labels = [label for page in PAGES for label in exercises(prose(cells_of(page)))]
    assert len(labels) == len(set(labels))


@every_page
def test_the_code_of_solutions_is_in_cells_that_run(page):
    assert not re.search(r"^`{3,}\s*(?:python|py|\{code)", prose(cells_of(page)), re.MULTILINE)

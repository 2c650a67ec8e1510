"""The first page says what executions found, and its marks in the book lead somewhere; links lead to executions."""

from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml

from pullpush.errors import UnknownNameError
from pullpush.lab import claims, findings
from pullpush.site import build as building

ROOT = Path(__file__).resolve().parents[2]
MARKS = [tuple(mark) for mark in building.MARK.findall((ROOT / "book" / "intro.md").read_text(encoding="utf-8"))]
PICTURE = (
    '<figure id="fig-1-4" class="numbered"><img src="data:," alt="x"><figcaption>Figure 1.4.</figcaption></figure>'
)


@pytest.fixture
def executed(tmp_path: Path) -> Path:
    """The execution of a chapter that shows figure 1.4."""
    output = nbformat.v4.new_output("display_data", {"text/html": PICTURE})
    cells = [nbformat.v4.new_markdown_cell("# Forces"), nbformat.v4.new_code_cell("1", outputs=[output])]
    path = tmp_path / "01-forces.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture
def judged() -> pd.DataFrame:
    row = {"id": "supclap-a", "claim": "SVR raises recall.", "source": "Table 1", "verdict": "holds", "unit": "points"}
    row |= {"value": 3.2, "low": 2.1, "high": 4.3, "half_width": 1.1, "paper_value": 2.7, "reason": ""}
    return pd.DataFrame([row | {"direction": "higher"}])


def completed(tmp_path: Path, text: str, judged: pd.DataFrame, executed: Path) -> str:
    page = tmp_path / "intro.md"
    page.write_text(text, encoding="utf-8")
    building.fill_front_page(page, judged, [executed])
    return page.read_text(encoding="utf-8")


def test_a_claim_comes_with_its_place_and_its_verdict(tmp_path, judged, executed):
    said = completed(tmp_path, "* <!-- claim: supclap-a -->\n", judged, executed)
    assert said == "* *SVR raises recall.* (Table 1) — **holds**: +3.2 ± 1.1 points (paper +2.7)\n"


def test_a_figure_links_to_its_chapter_and_has_no_second_anchor(tmp_path, judged, executed):
    said = completed(tmp_path, "<!-- figure: 01-forces 1.4 -->", judged, executed)
    assert 'href="01-forces.html#fig-1-4"' in said
    assert '<figure class="numbered">' in said
    assert "id=" not in said


@pytest.mark.parametrize("mark", ["claim: supclap-b", "figure: 02-svr 2.1"])
def test_a_name_that_is_not_there_is_an_error_with_the_nearest_one(tmp_path, judged, executed, mark):
    with pytest.raises(UnknownNameError, match=r"known: (supclap-a|01-forces)"):
        completed(tmp_path, f"<!-- {mark} -->", judged, executed)


@pytest.mark.parametrize(("kind", "words"), MARKS)
def test_every_mark_of_the_book_names_what_is_there(kind, words):
    pages = ROOT / "book"
    if kind == "claim":
        assert {claim.id: claim for claim in claims.load_all()}[words].judged
    elif kind == "found":
        assert words in yaml.safe_load((pages / findings.FILE).read_text(encoding="utf-8"))
    elif kind == "interactive":
        assert "force_lab(" in (pages / f"{words}.md").read_text(encoding="utf-8")
    elif kind == "cards":
        assert (pages / words).is_file()
    else:
        chapter, _, number = words.partition(" ")
        assert f'"{number}"' in (pages / f"{chapter}.md").read_text(encoding="utf-8")


def test_every_lesson_has_a_finding_on_the_first_page():
    text = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    lessons = {path.stem for path in (ROOT / "book").glob("[0-9][0-9]-*.md") if not path.stem.endswith("-lab")}
    assert lessons
    for lesson in lessons:
        assert f"]({lesson}.md).**" in text


def test_links_to_chapters_lead_to_their_executions_and_others_stay(tmp_path):
    (tmp_path / "library").mkdir()
    pages = {
        "intro.md": "[one](01-forces.md), [lab](01-forces-lab.md#global-or-local), [words](glossary.md)",
        "01-forces.ipynb": '"[lab](01-forces-lab.md)"',
        "library/index.md": "[one](../01-forces.md), [all](contents.md), `01-forces.md`",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    building._link_executions(tmp_path, {"01-forces", "01-forces-lab"})
    found = {name: (tmp_path / name).read_text(encoding="utf-8") for name in pages}
    assert found == {
        "intro.md": "[one](01-forces.ipynb), [lab](01-forces-lab.ipynb#global-or-local), [words](glossary.md)",
        "01-forces.ipynb": '"[lab](01-forces-lab.ipynb)"',
        "library/index.md": "[one](../01-forces.ipynb), [all](contents.md), `01-forces.md`",
    }

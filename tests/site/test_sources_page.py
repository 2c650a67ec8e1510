"""The page of sources: a row for what others made, and whose recordings published pages hold."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from pullpush.data.banks import BANKS
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO, TEXT
from pullpush.lab.root import find_root
from pullpush.site import chapters, sources_page

PLAYER = '<figure class="sound"><audio controls src="data:audio/mpeg;base64,AA=="></audio></figure>'


def notebook(folder: Path, text: str, players: int) -> Path:
    shown = [new_output("display_data", {"text/html": PLAYER * players})]
    cells = [new_markdown_cell(text), new_code_cell("show()", outputs=shown, execution_count=1)]
    nbformat.write(new_notebook(cells=cells), folder / "07-page.ipynb")
    return folder / "07-page.ipynb"


def test_what_others_recorded_has_authors_and_a_licence():
    for card in [*BANKS.values(), *SETS.values()]:
        if not card.source.startswith(sources_page.OURS):
            assert card.authors, f"{card.name}: say on its card whom to credit"
            assert card.licence, f"{card.name}: say on its card under which licence"
    table = sources_page.recordings()
    assert "**Tux Paint** (`tuxpaint`)" in set(table["recordings"])
    assert not table["recordings"].str.contains("synthetic|folder").any()


def test_weights_that_others_trained_are_listed_with_their_licence():
    table = sources_page.weights()
    named = set(table["encoder"].str.extract(r"\(`(.*)`\)")[0])
    assert named == {card.name for card in [*AUDIO.values(), *TEXT.values()] if card.weights}
    assert "cnn" not in named
    assert table["licence"].str.len().min() > 2
    assert table["by"].str.len().min() > 2


def test_sounds_of_a_page_are_counted_and_credited_by_the_link_beside_them(tmp_path):
    page = notebook(tmp_path, "Mixed from [Tux Paint](sources.md), twice [Tux Paint](sources.md).", 3)
    (row,) = sources_page.published([page]).to_dict("records")
    assert row["sounds"] == "3"
    assert row["made from"] == "Tux Paint"
    assert row["under"] == BANKS["tuxpaint"].licence


def test_a_page_without_sounds_needs_no_source(tmp_path):
    assert sources_page.published([notebook(tmp_path, "Silence.", 0)]).empty


@pytest.mark.parametrize("text", ["No word of it.", "From [a friend](sources.md).", "See [Tux Paint](other.md)."])
def test_sounds_without_a_source_are_refused(tmp_path, text):
    with pytest.raises(sources_page.SourceError, match=r"07-page .*\[Tux Paint\]\(sources\.md\)"):
        sources_page.published([notebook(tmp_path, text, 1)])


def test_the_page_keeps_its_text_and_gets_the_tables(tmp_path):
    page = tmp_path / "sources.md"
    page.write_text((find_root() / "book" / "sources.md").read_text("utf-8"), encoding="utf-8")
    sources_page.complete(page, [notebook(tmp_path, "[Tux Paint](sources.md)", 2)])
    text = page.read_text("utf-8")
    assert "<!--" not in text
    assert f"| [07-page](07-page.md) | 2 | Tux Paint | {BANKS['tuxpaint'].licence} |" in text
    assert "`wavlm`" in text


@pytest.mark.parametrize("chapter", chapters.chapters(find_root()), ids=lambda chapter: chapter.name)
def test_every_chapter_that_plays_sounds_says_in_its_source_whose_they_are(chapter):
    cells = chapters.read(chapter).cells
    plays = any(
        word in cell.source
        for cell in cells
        if cell.cell_type == "code"
        for word in ("galleries.", "player(", "sounds.", "search.retrieve")
    )
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert not plays or sources_page.NAMED.search(text), "name the source of the sounds: [Tux Paint](sources.md)"


def test_the_licence_note_of_the_executions_names_every_source_of_their_sounds():
    note = (find_root() / "executed" / "LICENSE.md").read_text("utf-8")
    cards = {card.title: card for card in [*BANKS.values(), *SETS.values()]}
    texts = [chapter.path.read_text("utf-8") for chapter in chapters.chapters(find_root())]
    named = {title for text in texts for title in sources_page.NAMED.findall(text)}
    assert "Tux Paint" in named
    for title in named:
        assert title in note
        assert cards[title].licence.partition(";")[0] in note

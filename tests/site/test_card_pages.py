"""The pages of cards: contents, a row for each card and language; sources, a row for what others made."""

from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from toys import add  # noqa: F401 - a fixture

from pullpush.data.banks import BANKS
from pullpush.data.languages import load_languages
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO
from pullpush.lab.root import find_root
from pullpush.losses import TERMS
from pullpush.site import card_pages, chapters
from pullpush.site.cli import main

PAGE = f"# Contents\n\nBefore.\n\n{card_pages.CONTENTS}\n\nAfter.\n"
TOY = """
from pullpush.encoders import AudioEncoder, AudioEncoderCard

CARD = AudioEncoderCard(name="toy", make=AudioEncoder, title="A|B", about="A toy.", source="us", licence="CC0-1.0")
"""


def kind(heading):
    return next(kind for kind in card_pages.KINDS if kind.heading == heading)


@pytest.mark.parametrize("each", card_pages.KINDS, ids=lambda each: each.heading)
def test_a_table_has_a_row_for_each_card_with_its_file(each):
    table = card_pages.table(each).set_index("name")
    assert list(table.index) == [f"`{name}`" for name in each.cards]
    for name, card in each.cards.items():
        row = table.loc[f"`{name}`"]
        assert row["what it is"].startswith(f"**{card.title}.** {card.about}<br>{card.source}")
        file = find_root() / "lib" / each.cards.package.replace(".", "/") / row["file"].strip("`")
        beside = [path for path in (file, file.with_suffix(".yaml")) if path.is_file()]  # a table of cards
        text = "\n".join(path.read_text("utf-8") for path in beside)
        assert f'"{name}"' in text or f"\n{name}:" in text or f"def {name}(" in text
    assert (find_root() / "book" / "library" / f"{each.reference}.md").is_file()


def test_a_loss_shows_what_it_needs_and_an_encoder_where_its_weights_come_from():
    losses = card_pages.table(kind("Losses")).set_index("name")
    assert losses.loc["`kcl`", "needs"] == "audio, texts"
    encoders = card_pages.table(kind("Text encoders")).set_index("name")
    assert list(encoders.loc["`sonar`", ["trained", "licence"]]) == ["on, or frozen", "CC BY-NC 4.0"]
    assert encoders.loc["`sonar`", "what it is"].endswith("<br>Weights: hub cointegrated/SONAR_200_text_encoder")
    assert "Weights" not in encoders.loc["`hashed`", "what it is"]


def test_papers_of_the_bibliography_are_cited_and_others_named():
    table = card_pages.table(kind("Losses"), {"atri"}).set_index("name")
    assert table.loc["`kcl`", "what it is"].endswith(f"<br>{TERMS['kcl'].source} {{cite:p}}`atri`")
    assert table.loc["`svr`", "what it is"].endswith(f"<br>{TERMS['svr'].source}")


def test_the_page_keeps_its_text_and_gets_the_tables(tmp_path):
    page, references = tmp_path / "contents.md", tmp_path / "references.bib"
    page.write_text(PAGE)
    references.write_text("@article{atri,\n}\n@misc{supclap, title = {x}}\n")
    card_pages.fill(page, {card_pages.CONTENTS: card_pages.contents(card_pages.cited(references))})
    text = page.read_text("utf-8")
    assert text.startswith("# Contents\n\nBefore.\n\n## Losses\n\nFiles of `lib/pullpush/losses`")
    assert text.endswith("|\n\nAfter.\n")
    assert card_pages.CONTENTS not in text
    assert "{cite:p}`supclap`" in text
    assert "{cite:p}`clotho`" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") >= 4 for line in rows)


def test_the_readers_own_stand_there_too(add):  # noqa: F811
    add("encoders/toy.py", TOY)
    rows = card_pages.contents().splitlines()
    (line,) = [row for row in rows if row.startswith("| `toy`")]
    assert line == r"| `toy` | **A\|B.** A toy.<br>us | from scratch | CC0-1.0 | 16 kHz | `toy.py` |"
    assert "toy" in AUDIO


def test_the_command_lists_the_same_by_name():
    said = CliRunner().invoke(main, ["list", "--contents"])
    assert said.exit_code == 0
    lines = said.output.splitlines()
    assert len(lines) == sum(1 + len(kind.cards) for kind in card_pages.KINDS) + 1 + len(load_languages())
    assert (
        "  kcl               KCL. Every clip with its texts in all languages at once, one InfoNCE a language." in lines
    )


# Sources

PLAYER = '<figure class="sound"><audio controls src="data:audio/mpeg;base64,AA=="></audio></figure>'


def notebook(folder: Path, text: str, players: int) -> Path:
    shown = [new_output("display_data", {"text/html": PLAYER * players})]
    cells = [new_markdown_cell(text), new_code_cell("show()", outputs=shown, execution_count=1)]
    nbformat.write(new_notebook(cells=cells), folder / "07-page.ipynb")
    return folder / "07-page.ipynb"


def test_sounds_of_a_page_are_counted_and_credited_by_the_link_beside_them(tmp_path):
    page = notebook(tmp_path, "Mixed from [Tux Paint](sources.md), twice [Tux Paint](sources.md).", 3)
    (row,) = card_pages.published([page]).to_dict("records")
    assert row["sounds"] == "3"
    assert row["made from"] == "Tux Paint"
    assert row["under"] == BANKS["tuxpaint"].licence


@pytest.mark.parametrize("text", ["No word of it.", "From [a friend](sources.md).", "See [Tux Paint](other.md)."])
def test_sounds_without_a_source_are_refused(tmp_path, text):
    with pytest.raises(card_pages.SourceError, match=r"07-page .*\[Tux Paint\]\(sources\.md\)"):
        card_pages.published([notebook(tmp_path, text, 1)])


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
    assert not plays or card_pages.NAMED.search(text), "name the source of the sounds: [Tux Paint](sources.md)"


def test_the_licence_note_of_the_executions_names_every_source_of_their_sounds():
    note = (find_root() / "executed" / "LICENSE.md").read_text("utf-8")
    cards = {card.title: card for card in [*BANKS.values(), *SETS.values()]}
    texts = [chapter.path.read_text("utf-8") for chapter in chapters.chapters(find_root())]
    named = {title for text in texts for title in card_pages.NAMED.findall(text)}
    assert "Tux Paint" in named
    for title in named:
        assert title in note
        assert cards[title].licence.partition(";")[0] in note

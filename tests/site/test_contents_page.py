"""The page of contents: a row for each card and language, its file and its paper, the reader's own included."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from toys import add  # noqa: F401 - a fixture

from pullpush.data.languages import load_languages
from pullpush.encoders import AUDIO
from pullpush.lab.root import find_root
from pullpush.losses import TERMS
from pullpush.site import contents_page
from pullpush.site.cli import main

PAGE = f"# Contents\n\nBefore.\n\n{contents_page.MARK}\n\nAfter.\n"
TOY = """
from pullpush.encoders import AudioEncoder, AudioEncoderCard

CARD = AudioEncoderCard(name="toy", make=AudioEncoder, title="A|B", about="A toy.", source="us", licence="CC0-1.0")
"""


def kind(heading):
    return next(kind for kind in contents_page.KINDS if kind.heading == heading)


@pytest.mark.parametrize("each", contents_page.KINDS, ids=lambda each: each.heading)
def test_a_table_has_a_row_for_each_card_with_its_file(each):
    table = contents_page.table(each).set_index("name")
    assert list(table.index) == [f"`{name}`" for name in each.cards]
    for name, card in each.cards.items():
        row = table.loc[f"`{name}`"]
        assert row["what it is"].startswith(f"**{card.title}.** {card.about}<br>{card.source}")
        file = find_root() / "lib" / each.cards.package.replace(".", "/") / row["file"].strip("`")
        assert f'"{name}"' in file.read_text("utf-8")
    assert (find_root() / "book" / "library" / f"{each.reference}.md").is_file()


def test_a_loss_shows_what_it_needs_and_an_encoder_where_its_weights_come_from():
    losses = contents_page.table(kind("Losses")).set_index("name")
    assert losses.loc["`kcl`", "needs"] == "audio, texts"
    encoders = contents_page.table(kind("Text encoders")).set_index("name")
    assert list(encoders.loc["`sonar`", ["trained", "licence"]]) == ["on, or frozen", "CC BY-NC 4.0"]
    assert encoders.loc["`sonar`", "what it is"].endswith("<br>Weights: hub cointegrated/SONAR_200_text_encoder")
    assert "Weights" not in encoders.loc["`hashed`", "what it is"]


def test_papers_of_the_bibliography_are_cited_and_others_named():
    table = contents_page.table(kind("Losses"), {"atri"}).set_index("name")
    assert table.loc["`kcl`", "what it is"].endswith(f"<br>{TERMS['kcl'].source} {{cite:p}}`atri`")
    assert table.loc["`svr`", "what it is"].endswith(f"<br>{TERMS['svr'].source}")


def test_every_language_has_a_row():
    assert list(contents_page.languages()["name"]) == [f"`{code}`" for code in load_languages()]


def test_the_page_keeps_its_text_and_gets_the_tables(tmp_path):
    page, references = tmp_path / "contents.md", tmp_path / "references.bib"
    page.write_text(PAGE)
    references.write_text("@article{atri,\n}\n@misc{supclap, title = {x}}\n")
    contents_page.complete(page, references=references)
    text = page.read_text("utf-8")
    assert text.startswith("# Contents\n\nBefore.\n\n## Losses\n\nFiles of `lib/pullpush/losses`")
    assert text.endswith("|\n\nAfter.\n")
    assert contents_page.MARK not in text
    assert "{cite:p}`supclap`" in text
    assert "{cite:p}`clotho`" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") >= 4 for line in rows)


def test_the_readers_own_stand_there_too(add):  # noqa: F811
    add("encoders/toy.py", TOY)
    rows = contents_page.markdown().splitlines()
    (line,) = [row for row in rows if row.startswith("| `toy`")]
    assert line == r"| `toy` | **A\|B.** A toy.<br>us | from scratch | CC0-1.0 | 16 kHz | `toy.py` |"
    assert "toy" in AUDIO


def test_the_command_lists_the_same_by_name():
    said = CliRunner().invoke(main, ["list", "--contents"])
    assert said.exit_code == 0
    lines = said.output.splitlines()
    assert len(lines) == sum(1 + len(kind.cards) for kind in contents_page.KINDS) + 1 + len(load_languages())
    assert (
        "  kcl               KCL. Every clip with its texts in all languages at once, one InfoNCE a language." in lines
    )


def test_the_books_page_waits_for_the_tables():
    assert contents_page.MARK in (find_root() / "book" / "library" / "contents.md").read_text("utf-8")

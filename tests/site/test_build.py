"""Tests of what the site does to the pages that it gathers."""

from __future__ import annotations

from pullpush.site import build as building


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

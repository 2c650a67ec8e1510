"""The page *How to add a paper*, followed to the letter in a copy of the book."""

import re
import shutil

import pandas as pd
import pytest
from click.testing import CliRunner
from miniature import ROOT

from pullpush.site.cli import main

STEP = re.compile(r"^\*\*\d\. [^*]+\*\*, `([^`]+)`.*?^(`{3,4})\w+\n(.*?)^\2$", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.deep
def test_the_page_followed_to_the_letter_ends_in_a_judged_claim(tmp_path, monkeypatch):
    page = (ROOT / "book" / "how-to-add-a-paper.md").read_text(encoding="utf-8")
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("*.ipynb", "measured", "images"))
    extra = tmp_path / "extra"
    for name, _, text in STEP.findall(page):
        path = extra / name.removeprefix("lib/pullpush/") if name.startswith("lib") else tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if name.endswith("_toc.yml") else ""
        assert before or not path.exists()
        path.write_text(before + text, encoding="utf-8")
    for name, value in {"BOOK": tmp_path, "EXTRA": extra, "HOME": tmp_path / "home"}.items():
        monkeypatch.setenv(f"PULLPUSH_{name}", str(value))
    commands = re.findall(r"^pullpush ([^#\n]+)", page, flags=re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = CliRunner().invoke(main, command.split())
        assert done.exit_code == 0, done.output
    assert re.search(
        r"raises recall\. \(Table 1; margins-t1-gain\)\n    .+ points.*\(paper \+1\.5\), 09-margins", done.output
    )
    saved = pd.read_csv(tmp_path / "executed" / "local" / "smoke" / "09-margins.gains.csv")
    assert set(saved["system"]) == {"margins"}

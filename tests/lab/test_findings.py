"""Pages open and end with sentences whose numbers are cells of tables: published ones, or their own."""

import math
from functools import partial

import pandas as pd
import pytest
import yaml
from miniature import ROOT

from pullpush.lab import findings, session
from pullpush.site import chapters

SAID = yaml.safe_load((ROOT / "book" / findings.FILE).read_text(encoding="utf-8"))
PUBLISHED = partial(findings._read, ROOT / "executed" / "quick")
CELLS = {"gain": {"file": "02-svr.gains.csv", "row": {"system": "svr"}, "as": "points"}}
GAINS = pd.DataFrame({"system": ["svr", "twice"], "value": [-0.02, 0], "low": [-0.03, 0], "high": [0.01, 0]})


@pytest.mark.parametrize("page", chapters.chapters(ROOT), ids=lambda page: page.name)
def test_no_pages_opening_or_closing_lacks_a_number(page):
    item = SAID[page.name]
    sentences = [item["found"], *item["remember"]]
    assert len(sentences) > 3
    for text in sentences:
        assert findings.REFERENCE.search(text), text
        assert len(text.split()) <= 40, text
    source = page.path.read_text(encoding="utf-8")
    assert source.index(f'findings.found("{page.name}")') < source.index(":tags: [parameters]")
    assert source.index("findings.remember(book)") < source.index("## Exercises")


@pytest.mark.parametrize("page", SAID)
def test_every_number_of_a_page_is_published(page):
    for text in [SAID[page]["found"], *SAID[page]["remember"]]:
        findings.sentence(text, SAID[page]["cells"], PUBLISHED)


def test_a_sentence_lacks_no_cell_and_no_cell_a_sentence():
    for page, item in SAID.items():
        named = {match[1] for text in [item["found"], *item["remember"]] for match in findings.REFERENCE.finditer(text)}
        assert item["cells"].keys() <= named, page


@pytest.mark.parametrize(
    ("low", "high", "said"), [(-0.3, -0.2, " [20.0, 30.0]"), (-0.3, 0.01, " [−1.0, 30.0]"), (math.nan, math.nan, "")]
)
def test_the_interval_of_a_loss_is_said_as_a_loss(low, high, said):
    assert findings.interval({"as": "points"}, {"value": -0.25, "low": low, "high": high}) == said


def test_a_number_stands_with_its_interval_unless_it_is_bare():
    said = partial(findings.sentence, cells=CELLS, read=lambda file: GAINS)
    assert said("It loses {gain}, in short {gain!}.") == "It loses 2.0 [−1.0, 3.0], in short 2.0."
    with pytest.raises(LookupError, match="0 rows of claims"):
        findings.sentence("{no-such-claim}", {}, lambda file: pd.DataFrame({"id": ["a"]}))


@pytest.mark.parametrize("profile", ["quick", "smoke"])
def test_a_page_says_its_own_numbers_where_it_has_the_published_size(profile, tmp_path, monkeypatch):
    said: list[str] = []
    item = {"found": "{gain}", "remember": ["{gain}"], "cells": {"gain": {**CELLS["gain"]}}}
    expected = "2.0 [−1.0, 3.0]"
    if profile == "smoke":
        item["cells"]["gain"]["row"] = {"system": "infonce+bi-dynamic-svr", "baseline": "infonce", "metric": "T2A R@1"}
        expected = findings.sentence("{gain}", item["cells"], PUBLISHED)
    monkeypatch.setattr(findings, "_of", lambda page: item)
    for name in ("display", "update_display"):
        monkeypatch.setattr(findings, name, lambda shown, **_: said.append(shown.data))
    book = session.start("02-svr", profile, out=tmp_path)
    book.save(GAINS, "gains")
    findings.found("02-svr")
    findings.remember(book)
    assert all(expected in one for one in said[1:])
    assert len(said) == (3 if profile == "quick" else 2)

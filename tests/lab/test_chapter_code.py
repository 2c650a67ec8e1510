"""What a chapter's numbers go through: what its cells use and name, its data, and nothing that only shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullpush.lab.chapter_code import code_of_cells, code_of_chapter
from pullpush.lab.profiles import profile
from pullpush.source import why_differs

SMOKE = profile("smoke")


def test_what_cells_import_and_use_counts_and_what_they_leave_does_not():
    code = code_of_cells(["from pullpush import metrics\nfrom pullpush.losses import svr", "metrics.gap(a, b)"], SMOKE)
    assert "pullpush.metrics.consistency:gap" in code
    assert "pullpush.metrics.consistency:rank_variance" not in code
    assert not any(name.startswith("pullpush.losses") for name in code), "imported, not used"


def test_recipes_are_found_by_name_with_the_losses_that_they_sum():
    code = code_of_cells(["x = {'a': 'infonce+bi-static-svr'}"], SMOKE)
    assert {"recipe infonce", "recipe bi-static-svr", "pullpush.losses._info_nce:info_nce"} <= code.keys()
    assert "pullpush.losses._svr:SVR" in code
    assert "pullpush.losses._siglip:siglip" not in code
    assert "pullpush.losses._siglip:siglip" in code_of_cells(["systems = 'infonce,siglip'"], SMOKE)


def test_modules_of_a_chapter_name_recipes_too():
    code = code_of_cells(["from pullpush.studies.consistency import schemes\nschemes.SCHEMES"], SMOKE)
    assert "pullpush.losses._kcl:kcl" in code


def test_what_only_shows_does_not_count():
    code = code_of_cells(["from pullpush.studies.world import figures\nfigures.learning_curve(history)"], SMOKE)
    assert not any(name.startswith(("pullpush.show", "pullpush.studies.world.figures")) for name in code)


def test_comments_and_commands_of_ipython_change_nothing_and_a_number_does():
    one, same, other = (code_of_cells([text], SMOKE) for text in ("x = 1", "x = 1  # why", "x = 2"))
    assert one == same == code_of_cells(["x = 1", "%matplotlib inline"], SMOKE)
    assert why_differs(one, other) == ("its cells changed",)


def test_the_encoders_and_sounds_of_the_profile_count():
    assert "pullpush.encoders.hashed:HashedNGrams" in code_of_cells([], SMOKE)
    changed = why_differs(code_of_cells([], SMOKE), code_of_cells([], profile("quick")))
    assert "the profile changed" in changed


def test_a_chapter_is_changed_by_what_was_kept_for_it(tiny):
    path = tiny / "book" / "10-tiny.md"
    before = code_of_chapter(path, SMOKE)
    stamp = tiny / "book" / "measured" / "10-tiny" / "radius" / "stamp.json"
    stamp.parent.mkdir(parents=True)
    stamp.write_text("{}")
    assert why_differs(before, code_of_chapter(path, SMOKE)) == ("measured radius is new",)


@pytest.mark.parametrize("name", ["01-forces", "02-svr"])
def test_the_chapters_reach_the_loop_their_losses_and_their_claims(name):
    code = code_of_chapter(Path(__file__).resolve().parents[2] / "book" / f"{name}.md", SMOKE)
    assert {"pullpush.losses._info_nce:info_nce", "pullpush.training.loop:train", "its claims"} <= code.keys()
    assert ("pullpush.losses._svr:SVR" in code) is (name == "02-svr")

"""The command speaks plainly."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pullpush.book.cli import main


@pytest.fixture
def pullpush(tiny):
    return lambda *words: CliRunner().invoke(main, list(words))


def test_list_names_chapters_parameters_and_profiles(pullpush):
    said = pullpush("list").output
    assert "10-tiny" in said
    assert "-p tau 0.07" in said
    assert "quick  " in said


def test_run_takes_parameters_anywhere(pullpush, tiny):
    done = pullpush("run", "-p", "tau", "0.2", "10-tiny", "--profile", "smoke", "-p", "seed", "1")
    assert done.exit_code == 0, done.output
    assert (tiny / "executed" / "smoke" / "10-tiny.results.csv").read_text().splitlines()[1].startswith("0.4,")


def test_a_profile_of_ones_own_has_a_folder_of_its_own(pullpush, tiny, tmp_path):
    (tmp_path / "mine.yaml").write_text("like: smoke\nepochs: 77\n")
    done = pullpush("run", "10-tiny", "--profile", str(tmp_path / "mine.yaml"))
    assert done.exit_code == 0, done.output
    assert (tiny / "executed" / "mine" / "10-tiny.results.csv").read_text().splitlines()[1].endswith(",77")
    assert pullpush("build", "--profile", str(tmp_path / "mine.yaml")).exit_code == 0


def test_run_all_then_build_then_a_change_is_noticed(pullpush, tiny):
    assert pullpush("run", "--all").exit_code == 0
    built = pullpush("build")
    assert built.exit_code == 0, built.output
    page = tiny / "_build" / "html" / "10-tiny.html"
    assert "double" in page.read_text(encoding="utf-8")
    chapter = tiny / "book" / "10-tiny.md"
    chapter.write_text(chapter.read_text() + "\nSee {ref}`nowhere`.\n")
    stale = pullpush("build")
    assert stale.exit_code == 1
    assert "has changed" in stale.output
    assert pullpush("run", "--all").exit_code == 0
    warned = pullpush("build")
    assert warned.exit_code == 1, "a broken reference must fail the build"
    assert "nowhere" in warned.output
    assert page.is_file(), "a failed build must keep the site that was there"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "10-tinny"], "did you mean '10-tiny'"),
        (["run", "10-tiny", "--profile", "quik"], "did you mean 'quick'"),
        (["run", "10-tiny", "-p", "tua", "1"], "did you mean 'tau'"),
        (["run"], "--all"),
        (["run", "--all", "-p", "tau", "1"], "one chapter"),
        (["open"], "make book"),
        (["build"], "has not been run"),
        (["fetch", "cloto"], "did you mean 'clotho'"),
        (["fetch", "vggsound"], "cannot be fetched"),
        (["run", "10-tiny", "--profile", "nothing.yaml"], "no profile at"),
    ],
)
def test_mistakes_get_one_message_and_exit_1(pullpush, words, says):
    done = pullpush(*words)
    assert done.exit_code == 1
    assert says in done.output
    assert "Traceback" not in done.output

"""The command speaks plainly."""

import errno
import os
import pty
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from click.testing import CliRunner
from miniature import ROOT

from pullpush.site import build as building
from pullpush.site.chapters import describe
from pullpush.site.cli import main


@pytest.fixture
def pullpush(tiny):
    return lambda *words: CliRunner().invoke(main, list(words))


def test_list_names_chapters_parameters_and_profiles(pullpush):
    said = pullpush("list").output
    assert "10-tiny" in said
    assert re.search(r"-p tau 0\.07 +\S", said), "with what it means"
    assert "quick  " in said


def test_help_waits_for_neither_torch_nor_notebooks():
    slow = "{'torch', 'pandas', 'nbformat', 'jupytext', 'matplotlib'} & set(sys.modules)"
    code = f"import sys; import pullpush.site.cli; sys.exit(' '.join({slow}) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_run_takes_parameters_anywhere(pullpush, tiny):
    done = pullpush("run", "-p", "tau", "0.2", "10-tiny", "--profile", "smoke", "-p", "seed", "1")
    assert done.exit_code == 0, done.output
    assert (
        (tiny / "executed" / "local" / "smoke" / "10-tiny.results.csv").read_text().splitlines()[1].startswith("0.4,")
    )


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


def test_run_all_skips_what_is_finished(pullpush, tiny):
    def made():
        return (tiny / "executed" / "local" / "smoke" / "10-tiny.ipynb").stat().st_mtime_ns

    every = ("run", "--all", "--profile", "smoke")
    assert pullpush(*every).exit_code == 0
    first = made()
    again = pullpush(*every)
    assert again.exit_code == 0
    assert "10-tiny  finished before" in again.output
    assert made() == first
    kept, page = tiny / "book" / "measured" / "11-other" / "radius.json", tiny / "book" / "10-tiny.md"
    kept.parent.mkdir(parents=True)
    for change in (
        lambda: pullpush(*every, "--again"),
        lambda: pullpush("run", "10-tiny", "--profile", "smoke"),  # named: asked for
        lambda: (kept.write_text("{}"), pullpush(*every)),  # of another chapter, which this one may show
        lambda: ((tiny / "book" / "remember.yaml").write_text("{}"), pullpush(*every)),  # what pages end with
        lambda: (page.write_text(page.read_text() + "\nMore.\n"), pullpush(*every)),
        lambda: (pullpush("run", "10-tiny", "--profile", "smoke", "-p", "tau", "1"), pullpush(*every)),
    ):
        before = made()
        change()
        assert made() > before
        assert "finished before" in pullpush(*every).output


def test_a_change_of_the_library_or_data_of_ones_own_run_all_again(pullpush, tiny, tmp_path, monkeypatch):
    assert pullpush("run", "--all", "--profile", "smoke").exit_code == 0
    (tmp_path / "lib").mkdir()
    monkeypatch.setattr("pullpush.site.chapters.LIBRARY", tmp_path / "lib")
    (tmp_path / "lib" / "figures.py").write_text("")  # no number goes through it
    assert "finished before" not in pullpush("run", "--all", "--profile", "smoke").output
    assert "finished before" in pullpush("run", "--all", "--profile", "smoke").output
    (tmp_path / "mine.yaml").write_text("like: smoke\n")
    for _ in range(2):
        done = pullpush("run", "--all", "--profile", str(tmp_path / "mine.yaml"))
        assert done.exit_code == 0
        assert "finished before" not in done.output


def test_build_shows_what_was_executed_here_before_what_was_published_and_says_which(pullpush, tiny, monkeypatch):
    monkeypatch.setattr(building, "_jupyter_book", fake_jupyter_book)
    assert pullpush("publish", "10-tiny").exit_code == 0
    assert "10-tiny  from executed/local/quick" in pullpush("build").output
    assert "10-tiny  from executed/quick" in pullpush("build", "--published").output
    mine = tiny / "executed" / "local" / "quick" / "10-tiny.ipynb"
    nbformat.write(executed(**describe(mine) | {"parameters": {"tau": 1.0}}), mine)
    said = pullpush("build").output
    assert "10-tiny  from executed/quick" in said
    assert "tau=1.0" in said, "why one's own was passed over"
    chapter = tiny / "book" / "10-tiny.md"
    chapter.write_text(chapter.read_text() + "\nMore.\n")
    stale = pullpush("build", "--published")
    assert stale.exit_code == 1
    assert "pullpush publish" in stale.output, "how to mend it"


def executed(**about):
    """An empty notebook that says something of itself."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.pullpush = about
    return notebook


def fake_jupyter_book(source, out, *, log):
    (out / "_build" / "html").mkdir(parents=True)
    (out / "_build" / "html" / "index.html").write_text("")


def test_running_and_building_leave_git_clean(pullpush, tiny, monkeypatch):
    monkeypatch.setattr(building, "_jupyter_book", fake_jupyter_book)

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *identity, *words], cwd=tiny, capture_output=True, text=True, check=True)
        return done.stdout

    shutil.copy(ROOT / ".gitignore", tiny)
    (tiny / "executed" / "quick").mkdir(parents=True)
    (tiny / "executed" / "quick" / "10-tiny.ipynb").write_text("what the maintainers publish")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "a clone")
    assert "executed/quick/10-tiny.ipynb" in git("ls-files")
    assert pullpush("run", "--all").exit_code == 0
    assert pullpush("build").exit_code == 0
    assert git("status", "--porcelain") == ""


def in_terminal(*words, **environment):
    """What a command writes in a terminal."""
    terminal, inside = pty.openpty()
    command = [sys.executable, "-c", "from pullpush.site.cli import main; main()", *words]
    done = subprocess.Popen(command, stdout=inside, stderr=inside, env={**os.environ, **environment})
    os.close(inside)
    said = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # nobody writes any more
            break
        if not piece:
            break
        said += piece
    os.close(terminal)
    assert done.wait() == 0, said.decode()
    return said.decode()


def test_a_terminal_shows_chapter_cell_and_seconds_beside_those_of_last_time(tiny):
    (tiny / "executed" / "smoke").mkdir(parents=True)
    nbformat.write(executed(seconds=350.2), tiny / "executed" / "smoke" / "10-tiny.ipynb")
    said = in_terminal("run", "10-tiny", "--profile", "smoke", PULLPUSH_PROGRESS="1")
    assert re.search(r"\r10-tiny  smoke  cell 3/3  \d+ s \(last time 350 s\)", said)
    assert re.search(r"10-tiny  smoke  \d+ s  \S+10-tiny.ipynb\s*$", said), "and one line stays"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "10-tinny"], "did you mean '10-tiny'"),
        (["run", "10-tiny", "--profile", "quik"], "did you mean 'quick'"),
        (["run", "10-tiny", "-p", "tua", "1"], "did you mean 'tau'"),
        (["run"], "--all"),
        (["run", "10-tiny", "--again"], "--again goes with --all"),
        (["run", "10-tiny", "--jobs", "2"], "--jobs goes with --all"),
        (["run", "--all", "-p", "tau", "1"], "one chapter"),
        (["publish", "10-tinny"], "did you mean '10-tiny'"),
        (["golden", "--accept"], "--accept wants names"),
        (["golden", "losses/infonc"], "did you mean 'infonce'"),
        (["verify", "10-tiny/radius"], "unknown kept result"),
        (["trunk", "randon"], "did you mean 'random'"),
        (["open"], "make book"),
        (["build"], "has not been run"),
        (["fetch", "cloto"], "did you mean 'clotho'"),
        (["fetch", "vggsound"], "cannot be fetched"),
        (["run", "10-tiny", "--profile", "nothing.yaml"], "no profile at"),
        (["evaluate", "clap", "folder:/nowhere"], "nowhere is not at /nowhere: write folder:/path"),
        (["fetch", "folder:/x"], "cannot be fetched: write folder:/path, where /path holds captions.csv"),
    ],
)
def test_mistakes_get_one_message_and_exit_1(pullpush, words, says):
    done = pullpush(*words)
    assert done.exit_code == 1
    assert says in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_disk_that_refuses_gets_one_message(pullpush, tiny, monkeypatch, number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number), str(tiny / "executed"))

    monkeypatch.setattr("pullpush.site.run.status.run_folder", refuse)
    done = pullpush("run", "10-tiny", "--profile", "smoke")
    assert done.exit_code == 1
    assert f"{os.strerror(number)}: '{tiny / 'executed'}': make room, or choose another folder" in done.output
    assert "Traceback" not in done.output

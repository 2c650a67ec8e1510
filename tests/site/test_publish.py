"""Publishing: pages are executed, what moved is named, the committed folder changes at the end and all at once."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from filelock import FileLock

from pullpush.errors import PullPushError, UnknownNameError
from pullpush.site import run as running
from pullpush.site.cli import main
from pullpush.site.publish import PublishError, publish
from pullpush.site.workers import work_through

PAGES = ("10-tiny", "11-tiny")


@pytest.fixture
def two(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny book of two pages; what runs in processes of their own runs here, to be quick."""
    book = tiny / "book"
    book.joinpath("_toc.yml").write_text(
        "format: jb-book\nroot: intro\nchapters:\n  - file: 10-tiny\n  - file: 11-tiny\n"
    )
    book.joinpath("11-tiny.md").write_text((book / "10-tiny.md").read_text().replace('"10-tiny"', '"11-tiny"'))
    book.joinpath("claims").mkdir()
    monkeypatch.setattr(running, "run_page", executed)
    here = {"jobs": 1}
    monkeypatch.setattr(running, "work_through", lambda *calls, **options: work_through(*calls, **options | here))
    return tiny


def executed(name: str, *, profile: str, root: Path, **options) -> str:
    """What `run.run_page` leaves, without a kernel: a page that says what it is of, and its tables."""
    import nbformat

    from pullpush.site import chapters
    from pullpush.site.chapters import place

    chapter = chapters.find(root, name)
    if "ruined = 1" in chapter.path.read_text():
        raise PullPushError("chapter failed in cell 3")
    out = place(root, profile)
    out.mkdir(parents=True, exist_ok=True)
    tau = chapters.parameters(chapter)["tau"]
    pd.DataFrame({"double": [2 * tau]}).to_csv(out / f"{name}.results.csv", index=False)
    pd.DataFrame({"system": ["a"], "time": [time.time()]}).to_csv(out / f"{name}.costs.csv", index=False)
    about = {"chapter": name, "profile": profile, "parameters": {}, "source_hash": chapters.source_hash(chapter)}
    notebook = nbformat.v4.new_notebook(metadata={"pullpush": about})
    nbformat.write(notebook, out / f"{name}.ipynb")
    return ""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change(root: Path, page: str, before: str, after: str) -> None:
    path = root / "book" / f"{page}.md"
    path.write_text(path.read_text().replace(before, after))


def test_a_publish_writes_every_page_with_its_tables_and_all_claims(two):
    done = publish()
    assert done.folder == two / "executed" / "quick"
    names = {f"{page}.{end}" for page in PAGES for end in ("ipynb", "results.csv", "costs.csv")} | {"claims.csv"}
    assert {path.name for path in done.folder.iterdir()} == names
    assert {one.how for one in done.tables} == {"is new"}
    assert done.timed == tuple(f"{page}.costs.csv" for page in PAGES)


def test_a_second_publish_executes_nothing_and_moves_nothing(two):
    said: list[str] = []
    publish()
    before = contents(two / "executed" / "quick")
    done = publish(report=said.append)
    assert said == [f"{page}  executed before" for page in PAGES]
    assert done.tables == done.claims == ()
    assert contents(two / "executed" / "quick") == before


def test_a_page_that_moved_is_named_and_checking_writes_nothing(two):
    publish()
    before = contents(two / "executed" / "quick")
    change(two, "10-tiny", "tau = 0.07", "tau = 0.08")
    for _ in range(2):
        done = publish(check=True)
        assert [(one.name, one.how) for one in done.tables] == [
            ("10-tiny.results.csv", "1 of 1 cells moved, first in row 1, double: 0.14 → 0.16")
        ]
        assert contents(two / "executed" / "quick") == before
    said = CliRunner().invoke(main, ["publish", "--check"])
    assert said.exit_code == 1
    assert "moved: 10-tiny.results.csv: 1 of 1 cells" in said.output
    assert "not compared, seconds of this machine: 10-tiny.costs.csv" in said.output
    said = CliRunner().invoke(main, ["publish"])
    assert said.exit_code == 0
    assert "no claim moved" in said.output
    assert "no table moved" in CliRunner().invoke(main, ["publish", "--check"]).output


def test_pages_that_are_named_are_published_and_others_stay(two):
    publish()
    verified = two / "executed" / "quick" / "verified.csv"
    verified.write_text("date\n")
    for page in PAGES:
        change(two, page, "tau = 0.07", "tau = 0.08")
    publish(["10-tiny"])
    tables = [pd.read_csv(two / "executed" / "quick" / f"{page}.results.csv")["double"][0] for page in PAGES]
    assert tables == [0.16, 0.14]
    assert verified.is_file()
    with pytest.raises(UnknownNameError, match="did you mean '10-tiny'"):
        publish(["10-tinny"])


def test_a_page_that_fails_publishes_nothing_and_the_others_are_kept(two):
    publish()
    before = contents(two / "executed" / "quick")
    change(two, "10-tiny", "tau = 0.07", "tau = 0.08")
    change(two, "11-tiny", "tau = 0.07", "ruined = 1")
    with pytest.raises(PublishError, match="11-tiny: chapter failed in cell 3") as caught:
        publish()
    assert "is as it was; 1 of 2 pages are there, the same command goes on" in str(caught.value)
    assert contents(two / "executed" / "quick") == before
    change(two, "11-tiny", "ruined = 1", "tau = 0.09")
    said: list[str] = []
    publish(report=said.append)
    assert said == ["10-tiny  executed before", "1/1  11-tiny  0 s"]


def test_of_two_publishes_the_second_waits_for_nobody(two):
    (two / "executed").mkdir()
    with FileLock(two / "executed" / ".publish.lock"), pytest.raises(PublishError, match="another process publishes"):
        publish()


@pytest.mark.parametrize("step", ["copying", "first rename", "second rename"])
def test_killed_while_it_writes_it_leaves_what_was_or_all_and_says_which(two, monkeypatch, step):
    publish()
    folder = two / "executed" / "quick"
    before = contents(folder)
    change(two, "10-tiny", "tau = 0.07", "tau = 0.08")
    renamed: list[object] = []

    def killed(source, target) -> None:
        renamed.extend([source] if Path(source).is_dir() else [])
        if step == "copying" or len(renamed) == (1 if step == "first rename" else 2):
            raise SystemExit("kill -9")
        rename(source, target)

    rename = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(*((shutil, "copy2") if step == "copying" else (os, "replace")), killed)
        with pytest.raises(SystemExit):
            publish()
    said: list[str] = []
    publish(check=True, report=said.append)
    if step == "second rename":
        assert said[0].startswith("a publish was killed at its last step, which is done now")
        assert pd.read_csv(folder / "10-tiny.results.csv")["double"][0] == 0.16
    else:
        assert said[0] == f"a publish was killed before {folder} was changed: it is as it was"
        assert contents(folder) == before
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".quick")]
    publish()
    assert pd.read_csv(folder / "10-tiny.results.csv")["double"][0] == 0.16


def test_a_publish_that_is_stopped_ends_its_pages_and_leaves_all_as_it_was(tiny):
    waits = "import sys, time, pathlib\npathlib.Path('../begun').touch(); time.sleep(600)\n"
    change(tiny, "10-tiny", "import sys\n", waits)
    (tiny / "book" / "claims").mkdir()
    command = [sys.executable, "-m", "pullpush", "publish", "--profile", "smoke"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 240
    while not (tiny / "begun").is_file():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "what is published is as it was" in said
    assert not (tiny / "executed" / "smoke").exists()
    assert not [*(tiny / "executed").glob(".running-*")]


def test_pages_that_are_run_side_by_side_go_on_beside_one_that_fails(two):
    change(two, "11-tiny", "tau = 0.07", "tau = 0.07\nruined = 1")
    every = ["run", "--all", "--profile", "smoke", "--jobs", "2"]
    said = CliRunner().invoke(main, every)
    assert said.exit_code == 1
    assert "11-tiny: chapter failed in cell 3" in said.output
    change(two, "11-tiny", "\nruined = 1", "")
    said = CliRunner().invoke(main, every)
    assert said.exit_code == 0, said.output
    assert re.search(r"1/1  11-tiny  \d+ s", said.output)
    assert "10-tiny  finished before" in CliRunner().invoke(main, every).output

"""Running a chapter leaves all of it or nothing."""

import subprocess
import sys
from itertools import count

import nbformat
import pandas as pd
import pytest

from pullpush.errors import UnknownNameError
from pullpush.site import chapters, warm
from pullpush.site.chapters import describe, last_time, place, why_stale
from pullpush.site.run import ChapterError, run


def test_a_run_leaves_the_notebook_and_its_table(tiny):
    done = run("10-tiny", profile="smoke", parameters={"tau": "0.5"})
    assert done.notebook == tiny / "executed" / "local" / "smoke" / "10-tiny.ipynb"
    (table,) = done.notebook.parent.glob("10-tiny.*.csv")
    assert pd.read_csv(table).to_dict("records") == [{"double": 1.0, "epochs": 2}]
    about = describe(done.notebook)
    assert about["parameters"] == {"tau": 0.5, "profile": "smoke"}
    assert about["packages"]["torch"]
    assert about["processor"]
    text = done.notebook.read_text(encoding="utf-8")
    assert "noise" not in "".join(str(c.get("outputs")) for c in nbformat.reads(text, 4).cells)
    assert str(tiny) not in text, "a machine's path in a published notebook"
    assert [path.name for path in (tiny / "executed").iterdir()] == ["local"]


def test_a_failed_run_keeps_what_was_there_and_shows_the_error(tiny):
    good = run("10-tiny").notebook
    before = good.read_bytes()
    with pytest.raises(ChapterError, match="AssertionError: asked to break") as caught:
        run("10-tiny", parameters={"name": "broken"})
    assert good.read_bytes() == before
    kept = tiny / "executed" / "local" / "failed" / "quick" / "10-tiny.ipynb"
    assert str(caught.value).endswith(f"the notebook up to there: {kept}")
    assert "asked to break" in kept.read_text()
    assert r'"noise\n"' in kept.read_text(), "its stderr"


def test_of_a_page_whose_kernel_dies_what_was_executed_is_kept(tiny):
    page = tiny / "book" / "10-tiny.md"
    dies = "print('so far')\n```\n\n```{code-cell} ipython3\nimport os\nos._exit(1)"
    page.write_text(page.read_text().replace("book.save(table)", dies))
    with pytest.raises(ChapterError, match="lost its kernel") as caught:
        run("10-tiny")
    kept = tiny / "executed" / "local" / "failed" / "quick" / "10-tiny.ipynb"
    assert str(caught.value).endswith(f"the notebook up to there: {kept}")
    assert r'"so far\n"' in kept.read_text()


def test_a_run_tells_its_cells_and_the_notebook_is_the_same_as_if_nobody_listened(tiny, tmp_path):
    told = []
    heard = run("10-tiny", out=tmp_path / "heard", watch=told.append).notebook
    assert told == ["cell 1/2", "cell 2/2"]
    alone = nbformat.read(run("10-tiny", out=tmp_path / "alone").notebook, as_version=4)
    heard = nbformat.read(heard, as_version=4)
    assert [cell.metadata for cell in heard.cells] == [cell.metadata for cell in alone.cells]
    for notebook in (heard, alone):
        notebook.metadata.pullpush.pop("seconds")
    assert heard == alone


def test_last_time_is_that_of_this_clone_else_that_of_the_published_execution(tiny):
    assert last_time(tiny, "10-tiny", "smoke") is None
    published = run("10-tiny", profile="smoke", out=place(tiny, "smoke", published=True))
    assert last_time(tiny, "10-tiny", "smoke") == round(published.seconds, 1)
    mine = run("10-tiny", profile="smoke")
    assert last_time(tiny, "10-tiny", "smoke") == round(mine.seconds, 1)
    mine.notebook.write_text("{")  # cut off
    assert last_time(tiny, "10-tiny", "smoke") == round(published.seconds, 1)


def test_a_kernel_does_not_report_the_interrupt_that_ends_it_but_all_else(tiny, capfd, monkeypatch):
    monkeypatch.setattr(warm, "before", count())  # a kernel whose errors come here
    errors = "for words in ('KeyboardInterrupt caught in kernel.', 'the transport is broken'):\n"
    errors += "    get_ipython().kernel.log.error(words)"
    chapter = tiny / "book" / "10-tiny.md"
    chapter.write_text(f"{chapter.read_text()}\n```{{code-cell}}\n{errors}\n```\n")
    run("10-tiny", profile="smoke")
    said = capfd.readouterr().err
    assert "the transport is broken" in said
    assert "KeyboardInterrupt" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="sockets with a name")
@pytest.mark.parametrize("first", [0, 1], ids=["ordinary", "warm"])
def test_a_kernel_is_given_no_port_which_could_be_anothers_by_then(tiny, monkeypatch, first):
    monkeypatch.setattr(warm, "before", count(first))
    chapter = tiny / "book" / "10-tiny.md"
    # One is that of its outputs, which it finds by itself.
    ports = "import psutil\nassert len(psutil.Process().net_connections('tcp')) < 2"
    chapter.write_text(f"{chapter.read_text()}\n```{{code-cell}}\n{ports}\n```\n")
    run("10-tiny", profile="smoke")


def test_a_kernel_that_has_ended_is_let_be():
    with subprocess.Popen(["true"]) as ends:
        kernel = warm.Forked(ends.pid)
    kernel.kill()
    kernel.terminate()
    assert kernel.poll() == 0


def test_an_execution_is_stale_when_its_source_or_its_parameters_differ(tiny):
    chapter = chapters.find(tiny, "10-tiny")
    notebook = tiny / "executed" / "local" / "quick" / "10-tiny.ipynb"
    assert "has not been run" in why_stale(notebook, chapter)
    run("10-tiny")
    assert why_stale(notebook, chapter) is None
    run("10-tiny", parameters={"tau": 1.0})
    assert "tau=1.0" in why_stale(notebook, chapter)
    run("10-tiny")
    chapter.path.write_text(chapter.path.read_text().replace("2 * tau", "3 * tau"))
    assert "has changed" in why_stale(notebook, chapter)
    notebook.write_text(notebook.read_text()[:100])
    assert "cannot be read" in why_stale(notebook, chapter)


def test_unknown_names_are_refused_before_anything_runs(tiny):
    with pytest.raises(UnknownNameError, match="did you mean 'quick'"):
        run("10-tiny", profile="quik")
    with pytest.raises(UnknownNameError, match="did you mean 'tau'"):
        run("10-tiny", parameters={"tua": 1})
    assert not (tiny / "executed").exists()

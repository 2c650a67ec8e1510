"""The book itself: what is committed matches its sources and is fit to be published, and all of it runs."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from click.testing import CliRunner
from nbformat import NotebookNode

from pullpush.site import chapters, publish
from pullpush.site.chapters import Chapter, describe, why_stale
from pullpush.site.cli import main
from pullpush.site.run import QUIET

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = chapters.chapters(ROOT)
QUICK = ROOT / "executed" / "quick"
LARGEST = 2_000_000  # bytes a chapter
MACHINE = re.compile("(?<![A-Za-z0-9_.~$})])/(?:" + "|".join(["work", "tmp", "home", "root", "Users"]) + ")/")

every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


# What any executed chapter must be


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


NAMED = {"book.save": 1, "page.show": 1, "page.table": 0}  # the argument that names the table


def tables_that(chapter: Chapter) -> set[str]:
    """File names of the tables that a chapter saves, read from its source."""
    names = set()
    for cell in code_cells(chapters.read(chapter)):
        for node in ast.walk(ast.parse(cell.source)):
            function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if function == "page.every_claim":
                names.add("claims")
            if function in NAMED:
                given = node.args[NAMED[function] :] or [word.value for word in node.keywords if word.arg == "name"]
                names.add(ast.literal_eval(given[0]) if given else "results")
    return {f"{chapter.name}.{name}.csv" for name in names}


def faults(path: Path) -> list[str]:
    """What keeps an executed notebook from being published."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    found = [f"{path.stat().st_size} bytes"] if path.stat().st_size >= LARGEST else []
    for cell in code_cells(notebook):
        where = f"cell {cell.id}"
        if cell.source.strip() and cell.execution_count is None:
            found.append(f"{where} was not executed")
        for output in cell.outputs:
            found += [f"{where}: {fault}" for fault in output_faults(cell, output)]
    # Embedded media are left out: any letters may turn up in them by chance.
    text = re.sub(r"[A-Za-z0-9+/=\\n]{200,}", "", path.read_text(encoding="utf-8"))
    found += [f"names {match}" for match in MACHINE.findall(text)]
    return found


def output_faults(cell: NotebookNode, output: NotebookNode) -> list[str]:
    if output.output_type == "error":
        return [f"error {output.ename}"]
    if output.output_type == "stream":
        return ["stderr"] if output.name == "stderr" else []
    found = []
    if any(kind.startswith("image/") for kind in output.data):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        found += [] if len(alt) > 20 else ["a figure without alt text"]
    page = output.data.get("text/html", "")
    for tag, attribute in (("img", "alt"), ("audio", "aria-label"), ("iframe", "title")):
        named = re.compile(rf'\b{attribute}="[^"]+"')
        found += [
            f"<{tag}> without {attribute}" for one in re.findall(rf"<{tag} [^>]*>", page) if not named.search(one)
        ]
    return found + ["a widget" for kind in output.data if "widget" in kind]


# The sources


@every_chapter
def test_a_chapter_has_its_parameters_in_one_cell_and_ends_with_exercises(chapter):
    notebook = chapters.read(chapter)
    tagged = [cell for cell in code_cells(notebook) if chapters.PARAMETERS_TAG in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    assert {"profile", "seed"} <= set(chapters.parameters(chapter))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert text.startswith("# ")
    assert "to be written" not in text.lower()
    whole = "\n".join(cell.source for cell in notebook.cells)
    assert -1 < whole.rfind("findings.remember(book)") < whole.rfind("## Exercises")


@every_chapter
def test_a_chapter_is_pure_source_that_compiles(chapter):
    for cell in code_cells(chapters.read(chapter)):
        ast.parse(cell.source)
        assert not cell.outputs


# The checks themselves


def test_the_checks_find_what_they_look_for(tmp_path):
    media = {"image/png": "aGk=", "text/html": '<img src="x"><audio src="y"></audio>'}
    outputs = [
        nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[]),
        nbformat.v4.new_output("stream", name="stderr", text="noise"),
        nbformat.v4.new_output("stream", name="stdout", text="read from /" + "tmp/x"),
        nbformat.v4.new_output("display_data", media),
    ]
    cells = [nbformat.v4.new_code_cell("1", outputs=outputs, execution_count=1), nbformat.v4.new_code_cell("2")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "bad.ipynb")
    said = "\n".join(faults(tmp_path / "bad.ipynb"))
    for fault in ("error ValueError", "stderr", "names /", "without alt text", "<img>", "<audio>", "was not executed"):
        assert fault in said


# What is committed


@every_chapter
def test_the_committed_execution_is_that_of_the_source(chapter):
    assert why_stale(QUICK / f"{chapter.name}.ipynb", chapter) is None, f"run: pullpush publish {chapter.name}"
    assert describe(QUICK / f"{chapter.name}.ipynb")["profile"] == "quick"


@every_chapter
def test_the_committed_execution_is_fit_to_be_published(chapter):
    assert faults(QUICK / f"{chapter.name}.ipynb") == []


@every_chapter
def test_the_committed_tables_are_those_that_the_chapter_saves(chapter):
    present = {path.name for path in QUICK.glob(f"{chapter.name}.*.csv")}
    assert present == tables_that(chapter)
    for name in present:
        assert len(pd.read_csv(QUICK / name)), f"{name} is empty"


def test_nothing_else_is_committed():
    names = {chapter.name for chapter in CHAPTERS} | {"claims", "verified"}
    assert {path.name.split(".")[0] for path in QUICK.iterdir() if not path.name.startswith(".")} <= names


# All of it, once, on synthetic sounds


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of a copy of the book, every chapter of which was run at profile smoke with an empty cache."""
    root = tmp_path_factory.mktemp("smoke")
    shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("*.ipynb", ".*"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_BOOK", str(root))
        patch.setenv("PULLPUSH_HOME", str(root / "home"))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")  # a process takes longer to start than these runs to train
        done = CliRunner().invoke(main, ["publish", "--profile", "smoke", "--jobs", "1"])
        assert done.exit_code == 0, done.output
        yield root


# Synthetic sounds do not speak; and of so few runs the rule of chapter 7 may choose plain InfoNCE, which gains nothing.
WITHOUT = re.compile(r"\.speech|^07-together\.recipe\.csv$")


def test_smoke_leaves_every_chapter_fit_to_be_published(smoke):
    executed = smoke / "executed" / "smoke"
    for chapter in CHAPTERS:
        notebook = executed / f"{chapter.name}.ipynb"
        assert why_stale(notebook, chapter) is None
        assert faults(notebook) == []
        present = {path.name for path in executed.glob(f"{chapter.name}.*.csv")}
        assert present <= tables_that(chapter)
        assert all(WITHOUT.search(name) for name in tables_that(chapter) - present)


def test_smoke_builds_without_a_warning(smoke):
    done = CliRunner().invoke(main, ["build", "--profile", "smoke"])
    assert done.exit_code == 0, done.output
    for chapter in CHAPTERS:
        page = (smoke / "_build" / "html" / f"{chapter.name}.html").read_text(encoding="utf-8")
        assert not re.findall(r'<img (?![^>]*\balt="[^"])[^>]*>', page), "a picture without text"
        assert not MACHINE.search(re.sub(r"[A-Za-z0-9+/=]{200,}", "", page))


# A page of each kind that trains: the world's systems, forces, a lesson, a lab.
TRAINING = ("00-world", "01-forces", "02-svr", "03-consistency-lab")


@pytest.mark.deep
def test_running_the_notebooks_again_with_an_empty_cache_gives_the_same_tables(smoke, tmp_path):
    """nbval runs every cell of the executed notebooks anew, as a reader who opens them would, and none may fail."""
    again = tmp_path / "again"
    notebooks = [str(smoke / "executed" / "smoke" / f"{page}.ipynb") for page in TRAINING]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--nbval-lax"]
    command += ["--nbval-cell-timeout=300", f"--rootdir={smoke}", *notebooks]
    environment = {**os.environ, **QUIET, "PULLPUSH_OUT": str(again), "PULLPUSH_HOME": str(tmp_path / "home")}
    environment |= {"IPYTHONDIR": str(tmp_path / "ipython"), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=smoke, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    cells = [
        cell for path in notebooks for cell in code_cells(nbformat.read(path, as_version=4)) if cell.source.strip()
    ]
    assert f"{len(cells)} passed" in done.stdout
    assert publish.tables(again, smoke / "executed" / "smoke", TRAINING) == []

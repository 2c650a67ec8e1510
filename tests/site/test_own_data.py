"""Every chapter runs on data of one's own: what cannot be measured is said, and no number of other data is shown.

Kept results are damaged in the copy of the book that is run: whichever page reads one of them fails.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import miniature
import nbformat
import pytest
import yaml

from pullpush.lab.gaps import notes
from pullpush.lab.root import find_root
from pullpush.site.chapters import chapters, parameters
from pullpush.site.run import run

ROOT = find_root()
PAGES = [chapter.name for chapter in chapters(ROOT)]
OF_DATASETS = [chapter.name for chapter in chapters(ROOT) if "dataset" in parameters(chapter)]
CLASSES = ("door knock", "engine", "clapping", "keyboard typing")


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The root of a copy of the book in which nothing that was kept can be read."""
    root = tmp_path_factory.mktemp("own")
    shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("*.ipynb", ".*"))
    for path in (root / "book" / "measured").glob("[0-9]*/*/*"):
        if path.suffix in {".csv", ".npz"}:
            path.write_text("of other data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_BOOK", str(root))
        patch.setenv("PULLPUSH_HOME", str(root / "home"))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        yield root


@pytest.fixture(scope="module")
def classes(book) -> Path:
    """A profile whose bank is a folder of classes with English labels only."""
    for number, name in enumerate(CLASSES):
        for take in range(4):
            miniature.tone(book / "classes" / name / f"{take}.wav", 4 * number + take, seconds=1 + 0.1 * take)
    return profile(book, "classes", world={"bank": f"folder:{book / 'classes'}"})


@pytest.fixture(scope="module")
def speech(book) -> Path:
    """A profile whose dataset are captioned recordings at 8 kHz, one caption a clip, in one language."""
    rows = []
    for number in range(60):
        split = ("train", "train", "train", "valid", "test")[number % 5]
        miniature.tone(book / "speech" / "audio" / f"{number}.wav", number, rate=8000)
        rows.append((split, f"{number}.wav", f"somebody says {number // 5 % 10}"))
    miniature.table(book / "speech" / "captions.csv", rows, ["split", "file_name", "caption"])
    return profile(book, "speech", dataset=f"folder:{book / 'speech'}")


def profile(root: Path, name: str, **fields) -> Path:
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"like": "smoke", **fields}))
    return path


def check(page: str, done) -> None:
    """The page has results, says why where it has none, and nobody was surprised."""
    surprises = [text for text, foreseen in notes(done.notebook) if not foreseen]
    assert surprises == []
    assert done.gaps == len(notes(done.notebook))
    code = [cell for cell in nbformat.read(done.notebook, as_version=4).cells if cell.cell_type == "code"]
    assert done.gaps < len(code) / 2, f"{page}: next to nothing of it was measured"
    shown = str([cell.outputs for cell in code])
    assert re.search(r"This page runs on the (profile|dataset)", shown)
    assert "is damaged" not in shown, "it read what was kept of other data"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_on_classes_of_ones_own(page, classes):
    check(page, run(page, profile=str(classes)))


@pytest.mark.parametrize("page", OF_DATASETS)
def test_a_page_runs_on_captioned_recordings_of_ones_own(page, speech):
    check(page, run(page, profile=str(speech)))

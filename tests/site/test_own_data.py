"""Every chapter runs on data of one's own: what cannot be measured is said, and no number of other data is shown.

Kept results are damaged in the copy of the book that is run: whichever page reads one of them fails.
"""

import re
import shutil
from pathlib import Path

import miniature
import nbformat
import pytest
import yaml

from pullpush.lab.root import find_root
from pullpush.site.chapters import chapters, gaps_of, parameters
from pullpush.site.run import run

pytestmark = pytest.mark.deep

ROOT = find_root()
PAGES = [chapter.name for chapter in chapters(ROOT)]
OF_DATASETS = [chapter.name for chapter in chapters(ROOT) if "dataset" in parameters(chapter)]
OF_LANGUAGES = ["03-consistency", "03-consistency-lab"]  # there is nothing to measure in one
CLASSES = ("door knock", "engine", "clapping", "keyboard typing")


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The root of a copy of the book in which nothing that was kept can be read."""
    root = tmp_path_factory.mktemp("own")
    shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("*.ipynb", ".*"))
    for path in (root / "book" / "measured").glob("[0-9]*/*.nc"):
        path.write_text("of other data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_BOOK", str(root))
        patch.setenv("PULLPUSH_HOME", str(root / "home"))
        patch.setenv("PULLPUSH_PROGRESS", "0")
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
    """A profile whose dataset are captioned recordings at 8 kHz, one caption a clip, in English."""
    recordings(book / "speech")
    return profile(book, "speech", dataset=f"folder:{book / 'speech'}")


@pytest.fixture(scope="module")
def translated(book) -> Path:
    """The same with captions in French."""
    captions = recordings(book / "translated")
    french = [(name, caption.replace("somebody says", "quelqu'un dit")) for _, name, caption in captions]
    miniature.table(book / "translated" / "captions.fra.csv", french, ["file_name", "caption"])
    return profile(book, "translated", dataset=f"folder:{book / 'translated'}")


def recordings(folder: Path) -> list[tuple[str, str, str]]:
    rows = []
    for number in range(60):
        split = ("train", "train", "train", "valid", "test")[number % 5]
        miniature.tone(folder / "audio" / f"{number}.wav", number, rate=8000)
        rows.append((split, f"{number}.wav", f"somebody says {number // 5 % 10}"))
    miniature.table(folder / "captions.csv", rows, ["split", "file_name", "caption"])
    return rows


def profile(root: Path, name: str, **fields) -> Path:
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"like": str(ROOT / "tests" / "fine.yaml"), **fields}))
    return path


def check(page: str, done, *, most: bool = True) -> None:
    """The page says why it has no results where it has none, and nobody was surprised; most: nearly all has some."""
    told = gaps_of(done.notebook)
    assert [text for text, foreseen in told if not foreseen] == []
    assert done.gaps == len(told)
    code = [cell for cell in nbformat.read(done.notebook, as_version=4).cells if cell.cell_type == "code"]
    assert done.gaps < len(code) / 5 if most else told
    shown = str([cell.outputs for cell in code])
    assert re.search(r"This page runs on the (profile|dataset)", shown)
    assert "is damaged" not in shown, f"{page} read what was kept of other data"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_on_classes_of_ones_own(page, classes):
    done = run(page, profile=str(classes))
    several = page in OF_LANGUAGES
    check(page, done, most=not several)
    assert not several or "captions.fra.csv" in gaps_of(done.notebook)[0][0]


@pytest.mark.parametrize("page", sorted(set(OF_DATASETS) - set(OF_LANGUAGES)))
def test_a_page_runs_on_captioned_recordings_of_ones_own(page, speech):
    check(page, run(page, profile=str(speech)))


@pytest.mark.parametrize("page", OF_LANGUAGES)
def test_a_page_on_languages_runs_on_recordings_that_are_told_in_two(page, translated):
    check(page, run(page, profile=str(translated)))

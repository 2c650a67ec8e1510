"""Two doors: losses, forces and metrics with torch, numpy and scipy alone; a downloaded chapter in an empty folder."""

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pullpush.lab import root as places, session
from pullpush.lab.paper import paper_table

ROOT = Path(__file__).resolve().parents[1]
CORE = ("torch", "numpy", "scipy")
# Hides every package but those that a fresh `pip install pullpush` would bring.
HIDE = """
import sys
from importlib.machinery import PathFinder

HIDDEN = set(sys.argv.pop(1).split(","))


class Fresh(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in HIDDEN else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Fresh
"""


def requirements(name: str, found: set[str]) -> set[str]:
    """A distribution and all that it requires here, without its extras."""
    name = canonicalize_name(name)
    if name not in found:
        found.add(name)
        for needed in map(Requirement, metadata.requires(name) or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                requirements(needed.name, found)
    return found


@pytest.fixture(scope="module")
def hidden() -> str:
    """The modules of everything that is installed but not required by the core."""
    allowed: set[str] = {"pullpush"}
    for name in CORE:
        requirements(name, allowed)
    modules = metadata.packages_distributions().items()
    return ",".join(module for module, names in modules if not allowed & {*map(canonicalize_name, names)})


def bare(code: str, hidden: str) -> subprocess.CompletedProcess[str]:
    """Run code where only the core's requirements can be imported."""
    command = [sys.executable, "-W", "error::ImportWarning", "-c", HIDE + code, hidden]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_core_runs_on_torch_numpy_and_scipy(hidden):
    done = bare(
        """
import numpy as np
import torch
import pullpush
from pullpush import forces, losses, metrics

torch.manual_seed(0)
audio, text = torch.nn.functional.normalize(torch.randn(2, 6, 4), dim=-1)
print(losses.info_nce(audio, text, tau=0.1).item() > 0)
print(losses.InfoNCE()(audio, text).value.item() > 0)
print(sorted(losses.TERMS)[:1])
print(tuple(forces.decompose(text, audio, tau=0.1).push.shape))
print(metrics.retrieval(text @ audio.T, torch.eye(6, dtype=torch.bool), ks=(6,))["R@6"])
print(metrics.difference(np.ones((3, 8)), np.zeros((3, 8))).value)
print(sorted({name.split(".")[0] for name in sys.modules} & HIDDEN))
""",
        hidden,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [*lines[:2], *lines[3:]] == ["True", "True", "(6, 4)", "1.0", "1.0", "[]"]


@pytest.mark.parametrize(
    ("part", "extra"),
    [*[(part, "train") for part in ("data", "encoders", "training")], *[(p, "book") for p in ("show", "lab", "site")]],
)
def test_a_part_whose_extra_is_missing_says_what_to_install(part, extra, hidden):
    done = bare(f"import pullpush.{part}", hidden)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"pullpush.{part} needs torchaudio" in last
    assert f"pip install 'pullpush[{extra}]'" in last


def test_the_command_without_its_extra_is_one_line(hidden):
    done = bare("from pullpush.__main__ import main\nmain()", hidden)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pullpush: ")
    assert done.stderr.count("\n") == 1
    assert "pip install 'pullpush[book]'" in done.stderr


def test_the_package_offers_its_parts_when_they_are_first_used():
    code = (
        "import sys, pullpush; print('torch' in sys.modules); pullpush.losses.info_nce; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_part_that_is_not_there_is_named_with_those_that_are():
    import pullpush

    with pytest.raises(AttributeError, match=r"'lossses': it has .*losses"):
        pullpush.lossses  # noqa: B018


# The wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install` would put into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 5e6, "the wheel has become large: what was computed stays in the repository"
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_the_book_but_nothing_that_was_computed(installed):
    book = installed / "pullpush" / "_root" / "book"
    for name in ("_toc.yml", "01-forces.md", "paper-tables/supclap_table1.csv", "claims/supclap.yaml"):
        assert (book / name).exists(), name
    assert not [*book.glob("measured/*/*.nc"), *book.glob("trunks/*"), *installed.rglob("*.safetensors")]
    assert not [*installed.rglob("*.ipynb")]
    assert not [*installed.rglob("*.py[co]")]


CHAPTER = """---
jupytext:
  formats: ipynb,md:myst
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A downloaded chapter

```{code-cell} ipython3
import pullpush
from pullpush.lab import claims, session
from pullpush.lab.paper import paper_table

book = session.start("01-forces", profile="smoke")
book.save(paper_table("supclap", 1), "theirs")
assert claims.load_all()
print(pullpush.__file__)
```
"""


def test_a_downloaded_chapter_runs_in_an_empty_folder(installed, tmp_path):
    (tmp_path / "mine.md").write_text(CHAPTER, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PULLPUSH")}
    environment |= {"PYTHONPATH": str(installed), "PULLPUSH_HOME": str(tmp_path / "home")}
    run = [sys.executable, "-m", "jupytext", "--to", "ipynb", "--execute", "--output", "done.ipynb", "mine.md"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(installed / "pullpush") in (tmp_path / "done.ipynb").read_text(encoding="utf-8")
    table = tmp_path / "executed" / "local" / "01-forces.theirs.csv"
    assert table.read_text().startswith("paper,table,system,")
    command = [sys.executable, "-m", "pullpush", "list"]
    listed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "01-forces" in listed.stdout


# Where the book is


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed book; the current folder is empty, and no clone is near."""
    book = tmp_path / "site-packages" / "pullpush" / "_root" / "book"
    (book / "paper-tables").mkdir(parents=True)
    (book / "_toc.yml").write_text("root: intro\n")
    (book / "paper-tables" / "supclap_table1.csv").write_text("system,value\nours,1\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.delenv("PULLPUSH_BOOK", raising=False)
    monkeypatch.delenv("PULLPUSH_OUT", raising=False)
    monkeypatch.setattr(places, "CHECKOUT", tmp_path / "no clone")
    monkeypatch.setattr(places, "PACKAGED", book.parent)
    return book.parent


def test_without_a_clone_the_installed_book_is_read_and_results_go_to_the_current_folder(packaged):
    assert places.find_root() == packaged
    assert places.workplace() == Path.cwd()
    assert paper_table("supclap", 1)["value"].tolist() == [1]
    assert session.start("01-forces", profile="smoke").out == Path.cwd() / "executed" / "local"


def test_a_clone_goes_before_the_installed_book(packaged, tmp_path, monkeypatch):
    (tmp_path / "clone" / "book" / "below").mkdir(parents=True)
    (tmp_path / "clone" / "book" / "_toc.yml").write_text("root: intro\n")
    monkeypatch.chdir(tmp_path / "clone" / "book" / "below")
    assert places.find_root() == places.workplace() == tmp_path / "clone"

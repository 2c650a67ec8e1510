"""The library's examples are true, nothing of its core is public without one, and the reference names what exists."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import socket
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
import torch

import pullpush

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = sorted((ROOT / "book" / "library").glob("*.md"))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LINES = 5  # of an example that is read at a glance
CORE = ["losses", "forces", "metrics"]
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(pullpush.__path__, "pullpush.")
    if not found.name.endswith("__main__")  # runs when it is imported
)


@pytest.fixture(autouse=True)
def alone(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, an empty cache, no display and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refused)
    mpl.use("agg")


def refused(*_: object) -> None:
    raise OSError("an example reaches for the network")


def examples(name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_say_what_they_print(name):
    for test in examples(name):
        torch.manual_seed(0)
        report: list[str] = []
        done = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
        assert done.failed == 0, "".join(report)


def public(module: ModuleType) -> dict[str, object]:
    """The functions and classes that a module offers: by `__all__`, or else all that it defines without an underscore.

    Records (what a function returns, what a card says) are shown by the functions that make or take them.
    """
    named = getattr(module, "__all__", None)
    offered = {name: getattr(module, name) for name in named or vars(module) if not name.startswith("_")}
    return {
        name: thing
        for name, thing in offered.items()
        if inspect.isfunction(thing) or inspect.isclass(thing)
        if not dataclasses.is_dataclass(thing) and not hasattr(thing, "_fields")  # a named tuple's
        if named or thing.__module__ == module.__name__
    }


@pytest.mark.parametrize("part", CORE)
def test_everything_public_in_the_core_has_a_short_example(part):
    offered = public(importlib.import_module(f"pullpush.{part}"))
    assert len(offered) > 5
    without = [name for name, thing in offered.items() if ">>>" not in (inspect.getdoc(thing) or "")]
    assert not without, f"no example in the docstrings of {', '.join(without)}"


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_short(name):
    for test in examples(name):
        if not test.name.endswith("__test__"):
            lines = sum(example.source.count("\n") for example in test.examples)
            assert lines <= LINES, f"the example of {test.name} has {lines} lines"


def documented(page: Path) -> dict[str, set[str]]:
    """The names that a page of the reference takes from each module."""
    found: dict[str, set[str]] = {}
    module = ""
    for kind, name in re.findall(
        r"^\.\. (currentmodule|autofunction|autoclass):: (\S+)", page.read_text("utf-8"), re.M
    ):
        module = name if kind == "currentmodule" else module
        found.setdefault(module, set()).update([name] * (kind != "currentmodule"))
    return found


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_the_reference_names_what_exists(page):
    for module, names in documented(page).items():
        missing = {name for name in names if not hasattr(importlib.import_module(module), name)}
        assert not missing, f"{page.name}: {module} has no {', '.join(missing)}"


@pytest.mark.parametrize("part", [*CORE, "encoders", "training"])
def test_the_reference_has_everything_public(part):
    module = importlib.import_module(f"pullpush.{part}")
    (page,) = [page for page in REFERENCE if page.stem == part]
    missing = public(module).keys() - documented(page)[module.__name__]
    assert not missing, f"book/library/{part}.md lacks {', '.join(missing)}"

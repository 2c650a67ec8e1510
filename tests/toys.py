"""Files that a reader adds: `add("losses/mine.py", text)` puts one where the catalogues look, for one test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from textwrap import dedent

import pytest

from pullpush.catalogue import EXTRA

Add = Callable[[str, str], Path]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Write a file below `$PULLPUSH_EXTRA`; when the test is over, none of it is left."""
    root = tmp_path / "extra"
    monkeypatch.setenv(EXTRA, str(root))
    names: list[str] = []

    def write(path: str, text: str) -> Path:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
        names.append("pullpush." + path.removesuffix(".py").replace("/", "."))
        return file

    yield write
    for name in names:
        package, _, module = name.rpartition(".")
        places = import_module(package).__path__
        places[:] = [place for place in places if not Path(place).is_relative_to(root)]
        sys.modules.pop(name, None)
        vars(import_module(package)).pop(module, None)
    invalidate_caches()

"""Files that a reader adds: `add("losses/mine.py", text)` puts one where the catalogues look, for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pullpush.catalogue import EXTRA, modules

Add = Callable[[str, str], Path]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Write a file below `$PULLPUSH_EXTRA`; when the test is over, none of it is left."""
    root = tmp_path / "extra"
    monkeypatch.setenv(EXTRA, str(root))
    packages: set[str] = set()

    def write(path: str, text: str) -> Path:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
        packages.add("pullpush." + Path(path).parent.as_posix().replace("/", "."))
        return file

    yield write
    monkeypatch.delenv(EXTRA)
    for package in packages:
        modules(package)  # forgets what the variable names no longer

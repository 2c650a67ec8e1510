import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests and the processes that they start share standin.py


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))

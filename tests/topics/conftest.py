"""A cache of its own for every test of topics."""

import pytest


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")

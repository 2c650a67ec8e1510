"""What tests of data share: an empty cache, and the real stamps where this machine has them."""

from __future__ import annotations

import os

import pytest

from pullpush import cache
from pullpush.data.recordings import tuxpaint

HOME = cache.home()  # before any test points it elsewhere
NAMED = os.environ.get(tuxpaint.SOURCE)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of one's own, and no stamps but those that the test names."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    monkeypatch.delenv(tuxpaint.SOURCE, raising=False)
    return tmp_path / "home"


@pytest.fixture
def root(home, tmp_path, monkeypatch):
    """An empty place for datasets, and a cache."""
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="module")
def module_home(tmp_path_factory):
    """A cache that the tests of one file share."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("home")
        patch.setenv("PULLPUSH_HOME", str(path))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        yield path


@pytest.fixture(scope="session")
def stamps():
    """The folder of the real stamps; nothing is fetched for a test."""
    if not NAMED and not (HOME / "tuxpaint" / "stamps").is_dir():
        pytest.skip(f"no Tux Paint stamps here: run `pullpush fetch`, or set {tuxpaint.SOURCE}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(HOME))
        return tuxpaint.fetch()

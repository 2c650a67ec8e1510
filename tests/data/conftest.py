"""What tests of data share: an empty cache, and the real stamps where this machine has them."""

import os

import pytest
from published import HOME, fetched

from pullpush.data.recordings import tuxpaint

NAMED = os.environ.get(tuxpaint.SOURCE)


@pytest.fixture
def home(own_home, monkeypatch):
    """A cache of one's own, and no stamps but those that the test names."""
    monkeypatch.delenv(tuxpaint.SOURCE, raising=False)
    return own_home


@pytest.fixture
def root(home, tmp_path, monkeypatch):
    """An empty place for datasets, and a cache."""
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def stamps():
    """The folder of the real stamps; nothing is fetched for a test."""
    if not NAMED and not (HOME / "tuxpaint" / "stamps").is_dir():
        pytest.skip(f"no Tux Paint stamps here: run `pullpush fetch`, or set {tuxpaint.SOURCE}")
    return fetched(tuxpaint.fetch)

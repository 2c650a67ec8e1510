import importlib

import pytest
from toys import add  # noqa: F401 - a fixture

from pullpush.golden import agreed

versions = importlib.import_module("pullpush.golden.versions")  # the package has a function of this name


@pytest.fixture(autouse=True)
def anew(monkeypatch, own_home):
    """Versions are asked for anew, and no probe finds a cache."""
    monkeypatch.setattr(versions, "_known", {})
    monkeypatch.setattr(agreed, "_as_in_files", lambda second: False)
    yield
    assert not own_home.exists(), "a probe has touched the cache"

import pytest
from made_up_glap import found as made_up


@pytest.fixture(scope="session")
def found():
    """Scores of every experiment in which each effect is known; see made_up_glap.py."""
    return made_up()

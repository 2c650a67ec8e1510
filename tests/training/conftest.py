import sys
from pathlib import Path

import pytest

# Tests and the processes that they start share standin.py; toys.py is above.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from toys import add  # noqa: E402, F401 - a fixture


@pytest.fixture(autouse=True)
def quiet(own_home):
    """Each test has a cache of its own."""

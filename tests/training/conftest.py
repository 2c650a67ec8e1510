import sys
from pathlib import Path

import pytest

# Tests and the processes that they start share standin.py; toys.py is above.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from toys import add  # noqa: E402, F401 - a fixture

from pullpush.data.scenes.world import WorldConfig, load_world  # noqa: E402


@pytest.fixture(scope="module")
def world(module_home):
    """A world of short scenes that the tests of one file share."""
    scene = {"duration": 1.5, "min_duration": 1.0, "max_events": 2}
    return load_world(WorldConfig("synthetic", n_train=40, n_valid=10, n_test=10, n_single_per_event=1, scene=scene))


@pytest.fixture(autouse=True)
def quiet(own_home):
    """Each test has a cache of its own."""

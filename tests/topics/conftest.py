"""A cache of its own for every test of topics."""

import pytest


@pytest.fixture(autouse=True)
def alone(own_home):
    """Nothing that another test has kept."""

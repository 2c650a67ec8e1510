import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from pullpush.show.palette import use_style

mpl.use("Agg")
sys.path.insert(0, str(Path(__file__).parent))  # where tests find the tables that they draw


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    """The book's look in every test, the old one after it, and no figure left open."""
    with mpl.rc_context():
        use_style()
        yield
    plt.close("all")

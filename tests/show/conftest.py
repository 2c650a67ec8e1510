from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from pullpush.show.palette import use_style

mpl.use("Agg")


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    """The book's look in every test, the old one after it, and no figure left open."""
    with mpl.rc_context():
        use_style()
        yield
    plt.close("all")

"""Tests of how means are written."""

from __future__ import annotations

from pullpush.metrics import difference
from pullpush.studies import means


def test_a_mean_is_written_with_its_half_width():
    found = difference([[0.97, 0.99, 0.95, 0.97]])
    assert means.plain(found) == f"0.970 ± {found.half_width:.3f}"

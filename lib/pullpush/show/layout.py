"""Sizes of figures on the page."""

from __future__ import annotations

PAGE_WIDTH = 9.5  # inches; wider figures are shrunk by the page, letters and all


def panel_size(count: int) -> tuple[float, float]:
    """Inches of a row of panels that a page shows about as large as drawn, so that its letters stay readable."""
    return (min(4.6 * count, PAGE_WIDTH), 3.4)

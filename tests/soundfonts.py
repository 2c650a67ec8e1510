"""A soundfont of one looped sine, for tests."""

from pullpush.golden.small_font import KEY, RATE, write

__all__ = ["KEY", "RATE", "write"]

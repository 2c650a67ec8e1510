"""A soundfont of one looped sine, for tests."""

from pullpush.golden.recordings import KEY, RATE, write_soundfont as write

__all__ = ["KEY", "RATE", "write"]

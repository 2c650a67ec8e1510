"""Means with their intervals, as the lab of chapter 1 asks for them; see `studies.means`."""

from pullpush.studies.means import by_clip

__all__ = ["by_clip"]

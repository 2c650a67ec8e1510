"""`recordings.tuxpaint` under the name by which executed pages import it."""

from pullpush.data.recordings.tuxpaint import index

__all__ = ["index"]

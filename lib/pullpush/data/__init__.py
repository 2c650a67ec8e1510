"""Data: clips with audio, captions and a known truth, from scenes or from recordings."""

from pullpush.extras import need

EXTRA = need("train", "pullpush.data")

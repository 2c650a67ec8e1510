"""`language.word_counts` under the name by which executed pages import it."""

from pullpush.data.language.word_counts import word_frequencies

__all__ = ["word_frequencies"]

"""`language.vocabulary` under the name by which executed pages import it."""

from pullpush.data.language.vocabulary import LANGUAGES

__all__ = ["LANGUAGES"]

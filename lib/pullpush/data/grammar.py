"""`language.grammar` under the name by which executed pages import it."""

from pullpush.data.language.grammar import prompts

__all__ = ["prompts"]

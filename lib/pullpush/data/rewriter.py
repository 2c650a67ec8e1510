"""What rewrites captions: one interface for grammars, language models and single words (see `pullpush.rewriting`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from pullpush.data.clips import Clips
from pullpush.data.vocabulary import Event
from pullpush.errors import PullPushError


class RewritingError(PullPushError, ValueError):
    """A caption cannot be rewritten; the message names it and says what to do."""


class Rewriter(Protocol):
    """Captions in other words. A frozen dataclass whose fields name it in caches; a subclass writes `rewrite`.

    What a caption becomes depends on the fields, the caption and the number: neither on the other captions nor on
    their order.
    """

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """One caption for each of `captions`, in their order.

        number: of the copy; other numbers bring other words, as far as there are any.

        Raises:
            RewritingError: a caption cannot be rewritten.
        """
        ...

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        """The same for the captions of these clips in one language, where it has to know what they tell.

        events: of the bank, where clips are scenes.

        Raises:
            RewritingError: it cannot rewrite captions of such clips, or in this language.
        """
        return self


class Merger(Protocol):
    """Two captions as one, for two clips that are mixed; the same holds as for `Rewriter`."""

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        """One caption for each pair of captions.

        Raises:
            RewritingError: two captions cannot be merged.
            ValueError: there are not as many first captions as second ones.
        """
        ...

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        """See `Rewriter`."""
        return self


def check_pairs(first: Sequence[str], second: Sequence[str]) -> None:
    """Require as many first captions as second ones."""
    if len(first) != len(second):
        raise ValueError(f"merge takes captions in pairs, got {len(first)} first and {len(second)} second ones")

"""Rewriting: captions in other words, and two captions as one; one file a rewriter.

>>> create("deletion", p=1.0, seed=7).rewrite(["A frog croaks in the distance."])
['A frog in the distance.']
"""

from pullpush.extras import need

EXTRA = need("train", "pullpush.rewriting")

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullpush.catalogue import Card, Catalogue
from pullpush.data.scenes.augmented import Merger, Rewriter, RewritingError

__all__ = ["REWRITERS", "Merger", "Rewriter", "RewriterCard", "RewritingError", "create"]


@dataclass(frozen=True, kw_only=True)
class RewriterCard(Card):
    """Rewrites captions; make: options → a `Rewriter`.

    merges: whether it also merges two captions into one; needs: what has to be there beside the captions; fetch: gets
    that ahead of its use and returns its folder (None where nothing is fetched), of so many megabytes.
    """

    merges: bool = False
    needs: str = ""
    fetch: Callable[[], Path] | None = None
    megabytes: float = 0.0


REWRITERS: Catalogue[RewriterCard] = Catalogue("pullpush.rewriting", RewriterCard, "rewriter")


def create(name: str, **options: Any) -> Any:
    """The rewriter `name` of `REWRITERS` with its options: a `Rewriter`, and of some a `Merger`, too.

    Raises:
        UnknownNameError: there is no such rewriter; the nearest names are given.
        TypeError: it has no such option.

    >>> [name for name, card in REWRITERS.items() if card.merges]
    ['endpoint', 'grammar']
    """
    return REWRITERS[name].make(**options)

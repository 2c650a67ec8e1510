"""The card of a rewriter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pullpush.catalogue import Card


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

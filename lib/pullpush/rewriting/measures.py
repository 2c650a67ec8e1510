"""What rewriting does to captions: is the meaning kept, and are there more words?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.data.language.word_counts import words

Encode = Callable[[Sequence[str]], Tensor]


class Meaning(NamedTuple):
    """By clip, `(N,)` float64: cosine of its captions with what they became, and with the captions of other clips."""

    kept: Tensor
    other: Tensor


class Variety(NamedTuple):
    """words, pairs: how many different ones; distinct_1, distinct_2: the share of different ones among all.

    A share falls as captions become more: compare as many with as many.
    """

    words: int
    pairs: int
    distinct_1: float
    distinct_2: float


def meaning(captions: Sequence[Sequence[str]], rewritten: Sequence[Sequence[str]], encode: Encode) -> Meaning:
    """How near rewritten captions stay to the captions that they were made of.

    kept is the mean cosine of a clip's captions with their own rewritten versions, other that with all captions of all
    other clips, which say how near two captions are that have nothing to do with each other.

    Args:
        captions: of each of N clips, N ≥ 2, at least one each.
        rewritten: caption by caption what they became.
        encode: M texts → `(M, d)` embeddings, which are normalised here.

    Raises:
        ValueError: clips without captions, fewer than two clips, or other numbers of rewritten captions.

    >>> letters = lambda texts: torch.tensor([[text.count(one) for one in "abc"] for text in texts]).float()
    >>> meaning([["a"], ["b"]], [["a a"], ["b c"]], letters).kept.round(decimals=2)
    tensor([1.0000, 0.7100], dtype=torch.float64)
    """
    counts = [len(texts) for texts in captions]
    if len(counts) < 2 or not all(counts) or counts != [len(texts) for texts in rewritten]:
        raise ValueError(
            f"meaning takes at least two clips with captions, each rewritten once: got captions of {len(counts)} "
            f"clips, {sum(counts)} in all, and {sum(map(len, rewritten))} rewritten"
        )
    before, after = (
        torch.nn.functional.normalize(torch.as_tensor(encode(list(chain(*several)))).double(), dim=-1)
        for several in (captions, rewritten)
    )
    clip = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    size = torch.tensor(counts, dtype=torch.float64)
    kept = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, clip, (before * after).sum(dim=1)) / size
    # The sum over all other clips' captions is that over all captions, less the clip's own.
    sums = torch.zeros(len(counts), before.shape[1], dtype=torch.float64).index_add_(0, clip, before)
    others = (sums * (sums.sum(dim=0) - sums)).sum(dim=1) / (size * (size.sum() - size))
    return Meaning(kept, others)


def variety(captions: Iterable[str]) -> Variety:
    """How many different words and pairs of neighbouring words captions have (distinct-1 and distinct-2).

    Raises:
        TypeError: one text instead of several.

    >>> variety(["A bell rings.", "A bell chimes."])
    Variety(words=4, pairs=3, distinct_1=0.6666666666666666, distinct_2=0.75)
    """
    if isinstance(captions, str):
        raise TypeError("captions must be several texts, got one string")
    told = [words(caption) for caption in captions]
    single = Counter(word for caption in told for word in caption)
    double = Counter(pair for caption in told for pair in pairwise(caption))
    shares = [len(counted) / max(1, counted.total()) for counted in (single, double)]
    return Variety(len(single), len(double), *shares)

"""Retrieval metrics in the protocols that the papers use.

Every protocol is a relevance matrix: one caption per clip is the identity; five captions per clip make every
text query have one relevant clip and every audio query five relevant captions (`by_clip`); the scene graph
gives graded relevance. Ties count against the system: a constant model does not score, where its equal rows
round alike (a product of float64 matrices does not promise it).
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pullpush.checks import (
    check_chance,
    check_count,
    check_cutoffs,
    check_embeddings,
    check_floats,
    check_number,
    check_numbers_of,
    check_relevance,
    check_square,
)
from pullpush.errors import check_known
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language
from pullpush.precision import in_single

KS, MAP_AT = (1, 5, 10), (10, 16)
DIVISORS = ("reachable", "relevant")
CLOSE = 1e-6  # to a threshold: a cosine of 1 may be rounded to less


def retrieval(
    similarity: Tensor,
    relevance: Tensor | None = None,
    ks: Sequence[int] = KS,
    map_at: Sequence[int] = MAP_AT,
    *,
    threshold: float = 1.0,
    divisor: str = "reachable",
) -> dict[str, float]:
    """Mean retrieval metrics over the queries, as fractions in [0, 1].

    See `retrieval_per_query` for the arguments, the definitions and the errors.

    >>> retrieval(torch.eye(4), ks=(1,), map_at=(10,))
    {'R@1': 1.0, 'mAP@10': 1.0}
    """
    values = retrieval_per_query(similarity, relevance, ks, map_at, threshold=threshold, divisor=divisor)
    if not len(similarity):
        raise ValueError("there are no queries to take a mean over: similarity is (0, M)")
    return {name: value.mean().item() for name, value in values.items()}


def retrieval_per_query(
    similarity: Tensor,
    relevance: Tensor | None = None,
    ks: Sequence[int] = KS,
    map_at: Sequence[int] = MAP_AT,
    *,
    threshold: float = 1.0,
    divisor: str = "reachable",
) -> dict[str, Tensor]:
    """Retrieval metrics of each query, for confidence intervals and paired tests.

    * `R@k`: 1 if a relevant item is among the first k (ATRI §5.4, SupCLAP §4.1.1, GLAP §3).
    * `mAP@k`: precision at each relevant item among the first k, summed and divided by min(k, relevant items), or, with
      divisor="relevant", by all relevant items, as DCASE 2025 and LAION-CLAP do: the same unless a query has more of
      them than k. With one relevant item this is 1/rank within the first k.
    * `nDCG@k` (k of `map_at`) is added when `relevance` is floating point, with the relevance as gain.

    Args:
        similarity: `(Q, M)` floating point, queries in rows.
        relevance: `(Q, M)` boolean, or graded relevance in [0, 1]; None, of square similarities: item i is query i's.
        ks: cut-offs of recall.
        map_at: cut-offs of mean average precision.
        threshold: graded relevance at least this high counts as relevant for R@k and mAP@k.
        divisor: "reachable" or "relevant", of mAP@k.

    Returns:
        Name → `(Q,)` float64 tensor.

    >>> retrieval_per_query(torch.tensor([[0.9, 0.1]]), torch.tensor([[False, True]]), ks=(1, 2), map_at=())
    {'R@1': tensor([0.], dtype=torch.float64), 'R@2': tensor([1.], dtype=torch.float64)}

    Raises:
        ValueError: shapes differ, NaN similarity, relevance outside [0, 1], a cut-off below 1, or
            queries without a relevant item (named).
        TypeError: what is no tensor, or no whole number.
        UnknownNameError: another divisor.
    """
    check_cutoffs(ks=ks, map_at=map_at)
    check_known("divisor", divisor, DIVISORS)
    relevance = check_square(similarity) if relevance is None else relevance
    relevant = relevant_items(similarity, relevance, threshold)
    order = first_items(similarity, relevance, max([*ks, *map_at, 1]))
    found = relevant.gather(1, order).double()
    values: dict[str, Tensor] = {f"R@{k}": found[:, :k].amax(dim=1) for k in ks}
    precision = found.cumsum(dim=1) / torch.arange(1, found.shape[1] + 1, device=found.device)
    total = relevant.sum(dim=1)
    for k in map_at:
        values[f"mAP@{k}"] = (precision * found)[:, :k].sum(dim=1) / (
            total.clamp(max=k) if divisor == "reachable" else total
        )
    if relevance.is_floating_point():
        ideal = relevance.topk(order.shape[1], dim=1).values.double()
        ranked = relevance.gather(1, order).double()
        for k in map_at:
            values[f"nDCG@{k}"] = _dcg(ranked, k) / _dcg(ideal, k)
    return values


def caption_relevance(clips: int, captions: int) -> Tensor:
    """Relevance of `clips × captions` texts (clip-major) to clips: `(clips·captions, clips)` boolean.

    >>> caption_relevance(2, 2).int().tolist()
    [[1, 0], [1, 0], [0, 1], [0, 1]]
    """
    check_count("clips", clips)
    check_count("captions", captions)
    return torch.eye(clips, dtype=torch.bool).repeat_interleave(captions, dim=0)


@in_single
def by_clip(
    audio: Tensor,
    text: Tensor,
    *,
    ks: Sequence[int] = KS,
    map_at: Sequence[int] = MAP_AT,
) -> dict[str, Tensor]:
    """Both directions in the protocol of AudioCaps and Clotho, for each of N clips with C captions.

    Every caption is a text query with one relevant clip (T2A); every clip is an audio query with C relevant
    captions among N·C, of which R@k needs one and mAP@k counts all (A2T). This is the one protocol of the book: tables
    are its means, intervals and tests resample its clips.

    >>> clips = torch.eye(3)
    >>> by_clip(clips, clips, ks=(1,), map_at=())
    {'T2A R@1': tensor([1., 1., 1.], dtype=torch.float64), 'A2T R@1': tensor([1., 1., 1.], dtype=torch.float64)}

    Args:
        audio: `(N, d)` L2-normalised clip embeddings.
        text: `(N, C, d)` L2-normalised caption embeddings, or `(N, d)` for C = 1.
        ks: cut-offs of recall.
        map_at: cut-offs of mean average precision.

    Returns:
        "T2A R@1" … "A2T mAP@16" → `(N,)` float64 fractions; T2A is the mean over the clip's captions.

    Raises:
        ValueError: shapes that do not match, values that are not finite, or a cut-off below 1.
        TypeError: what is no tensor.
    """
    check_embeddings(audio=audio, text=text)
    text = text[:, None] if text.ndim == 2 else text
    if text.ndim != 3 or audio.ndim != 2 or len(text) != len(audio) or text.shape[2] != audio.shape[1]:
        raise ValueError(f"text must be (N, C, d) for audio (N, d), got {tuple(text.shape)} and {tuple(audio.shape)}")
    clips, captions, _ = text.shape
    similarity = text.flatten(0, 1) @ audio.T
    relevance = caption_relevance(clips, captions).to(audio.device)
    return {
        f"{side} {metric}": values.view(clips, -1).mean(dim=1)
        for side, rows, truth in (("T2A", similarity, relevance), ("A2T", similarity.T, relevance.T))
        for metric, values in retrieval_per_query(rows, truth, ks, map_at).items()
    }


@in_single
def by_caption(
    audio: Tensor, text: Tensor, clip: Tensor, *, ks: Sequence[int] = KS, map_at: Sequence[int] = MAP_AT
) -> dict[str, Tensor]:
    """Both directions for N clips with M captions in all: what `by_clip` gives where every clip has M / N.

    Every caption is a text query with one relevant clip, every clip an audio query with all of its captions.

    >>> clips = torch.eye(2)
    >>> by_caption(clips, clips[[0, 0, 1]], torch.tensor([0, 0, 1]), ks=(1,), map_at=())
    {'T2A R@1': tensor([1., 1.], dtype=torch.float64), 'A2T R@1': tensor([1., 1.], dtype=torch.float64)}

    Args:
        audio: `(N, d)` L2-normalised clip embeddings.
        text: `(M, d)` L2-normalised caption embeddings.
        clip: `(M,)` int64, which clip each caption is of; each has one at least.
        ks: cut-offs of recall.
        map_at: cut-offs of mean average precision.

    Returns:
        "T2A R@1" … "A2T mAP@16" → `(N,)` float64 fractions; T2A is the mean over the clip's captions, so that every
        clip counts alike.

    Raises:
        ValueError: shapes that do not match, NaN, or clips without a caption.
        TypeError: what is no tensor.
    """
    check_embeddings(audio=audio, text=text)
    if not torch.is_tensor(clip):
        raise TypeError(f"clip must be a tensor (M,) of whole numbers, got {type(clip).__name__}")
    if text.ndim != 2 or audio.ndim != 2 or clip.shape != text.shape[:1] or text.shape[1] != audio.shape[1]:
        raise ValueError(f"text must be (M, d) and clip (M,), got {tuple(text.shape)} and {tuple(clip.shape)}")
    check_numbers_of("clip", clip, len(text), len(audio))
    similarity = text @ audio.T
    relevance = clip[:, None] == torch.arange(len(audio), device=clip.device)
    asked = retrieval_per_query(similarity, relevance, ks, map_at)
    counts = clip.bincount(minlength=len(audio))
    means = {
        f"T2A {name}": values.new_zeros(len(audio)).index_add_(0, clip, values) / counts
        for name, values in asked.items()
    }
    answered = retrieval_per_query(similarity.T, relevance.T, ks, map_at)
    return means | {f"A2T {name}": values for name, values in answered.items()}


def relevant_items(similarity: Tensor, relevance: Tensor, threshold: float) -> Tensor:
    """Which items are relevant, `(Q, M)` boolean, once all inputs are as they must be."""
    check_floats(similarity=similarity)
    check_relevance(relevance)
    check_number("threshold", threshold)
    if similarity.dtype.itemsize < 4:
        raise ValueError(f"similarity in {similarity.dtype} makes ties of neighbours: text.float() @ audio.float().T")
    if similarity.ndim != 2 or similarity.shape != relevance.shape:
        raise ValueError(
            f"similarity and relevance must have one shape (Q, M), got {tuple(similarity.shape)} "
            f"and {tuple(relevance.shape)}"
        )
    if torch.isnan(similarity).any():
        rows = torch.isnan(similarity).any(dim=1).nonzero().flatten().tolist()
        raise ValueError(f"similarity is NaN for queries {rows[:10]}: check the embeddings that it comes from")
    graded = relevance.dtype != torch.bool
    relevant = relevance >= threshold - CLOSE if graded else relevance
    empty = (~relevant.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        least = f" (of {threshold:g} or more: see `threshold`)" if graded else ""
        raise ValueError(
            f"queries {empty[:10]} have no relevant item{least} ({len(empty)} in all): leave them out and say so"
        )
    return relevant


def first_items(similarity: Tensor, relevance: Tensor, k: int) -> Tensor:
    """The first k items (all, if there are fewer) of `sorted_items`, `(Q, k)`. Only queries with ties among their first
    k + 1 items need to be sorted; that is much of the time and memory."""
    if similarity.shape[1] <= k:
        return sorted_items(similarity, relevance)
    values, order = similarity.topk(k + 1, dim=1)
    order = order[:, :k].contiguous()
    tied = (values[:, 1:] == values[:, :-1]).any(dim=1)
    if tied.any():
        order[tied] = sorted_items(similarity[tied], relevance[tied])[:, :k]
    return order


def sorted_items(similarity: Tensor, relevance: Tensor) -> Tensor:
    """The items `(Q, M)`, most similar first and ties by least relevance."""
    # Two stable sorts: the second keeps the first's order among ties, the least relevant in front.
    by_relevance = relevance.double().argsort(dim=1, stable=True)
    by_similarity = similarity.gather(1, by_relevance).argsort(dim=1, descending=True, stable=True)
    return by_relevance.gather(1, by_similarity)


def _dcg(gains: Tensor, k: int) -> Tensor:
    top = gains[:, :k]
    return (top / torch.arange(2, top.shape[1] + 2, device=top.device).log2()).sum(dim=1)


def recall_by_chance(k: int, relevant: int, items: int) -> float:
    """Expected R@k of a random order of `items`, `relevant` of which are right.

    >>> recall_by_chance(1, 1, 4)
    0.25
    """
    check_chance(k, relevant, items)
    return 1 - math.comb(items - relevant, min(k, items)) / math.comb(items, min(k, items))


def precision_by_chance(k: int, relevant: int, items: int) -> float:
    """Expected mAP@k of a random order of `items`, `relevant` of which are right.

    >>> precision_by_chance(1, 5, 100)
    0.05
    """
    check_chance(k, relevant, items)
    k = min(k, items)
    # An item at rank i is right with probability r/M, and then so are (i−1)(r−1)/(M−1) of those before it.
    others = (relevant - 1) / max(items - 1, 1)
    return relevant / items * sum((1 + (i - 1) * others) / i for i in range(1, k + 1)) / min(k, relevant)


def scores_of(ks: Sequence[int], map_at: Sequence[int]) -> tuple[Score, ...]:
    """What `by_clip` gives for these cut-offs, with what chance gives."""
    kinds = [(f"R@{k}", partial(recall_by_chance, k)) for k in ks]
    kinds += [(f"mAP@{k}", partial(precision_by_chance, k)) for k in map_at]
    return tuple(
        Score(f"{side} {name}", better="higher", chance=chance) for side in ("T2A", "A2T") for name, chance in kinds
    )


def scores_by_chance(
    captions: Sequence[int], *, ks: Sequence[int] = KS, map_at: Sequence[int] = MAP_AT
) -> dict[str, float]:
    """What a random order scores where clips have so many captions each, by the names that `by_caption` gives.

    >>> scores_by_chance([1, 1, 2, 4], ks=(1,), map_at=())
    {'T2A R@1': 0.25, 'A2T R@1': 0.25}
    """
    clips, total = len(captions), sum(captions)
    shares = {count: number / clips for count, number in Counter(captions).items()}
    expected: dict[str, Any] = {score.name: score.chance for score in scores_of(ks, map_at)}
    return {
        name: chance(1, clips)
        if name.startswith("T2A")
        else sum(s * chance(count, total) for count, s in shares.items())
        for name, chance in expected.items()
    }


def retrieval_of_test(ks: Sequence[int], map_at: Sequence[int], embedded: Embeddings) -> Values:
    """`by_clip` of the test clips with all their captions, and "R@1", the mean of both: `(N,)`, or `(N, K)`."""
    columns = [by_clip(embedded.audio, embedded.texts(one), ks=ks, map_at=map_at) for one in embedded.languages]
    return by_language([column | {"R@1": (column["T2A R@1"] + column["A2T R@1"]) / 2} for column in columns])


CARDS = (
    MetricCard(
        name="retrieval",
        make=partial(retrieval_of_test, KS, (10,)),
        title="Retrieval",
        about="Recall and mean average precision of both directions, over the test clips with all their captions.",
        source="SupCLAP §4.1.1, ATRI §5.4, GLAP §3",
        needs=("audio", "texts"),
        scores=(*scores_of(KS, (10,)), Score("R@1", better="higher")),
    ),
    MetricCard(
        name="recall-at-1",
        make=partial(retrieval_of_test, (1,), ()),
        title="Recall at one",
        about="How often the right clip, or the right caption, comes first.",
        source="SupCLAP §4.1.1",
        needs=("audio", "texts"),
        scores=(*scores_of((1,), ()), Score("R@1", better="higher")),
    ),
)

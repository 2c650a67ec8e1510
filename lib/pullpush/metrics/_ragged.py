"""The protocol of `by_clip` for clips that differ in their number of captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pullpush.checks import check_embeddings, check_numbers_of
from pullpush.metrics._retrieval import KS, MAP_AT, retrieval_per_query, scores_of


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
    asked = {name: chance(1, clips) for name, chance in expected.items() if name.startswith("T2A")}
    return asked | {
        name: sum(share * chance(count, total) for count, share in shares.items())
        for name, chance in expected.items()
        if name.startswith("A2T")
    }

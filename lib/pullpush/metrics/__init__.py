"""Metrics: retrieval, zero-shot classification, geometry of the space, consistency, and how sure we are."""

from pullpush.metrics.consistency import (
    angle,
    direction_error,
    distance,
    gap,
    language_ranks,
    mean_rank_variance,
    rank_variance,
)
from pullpush.metrics.geometry import alignment, uniformity
from pullpush.metrics.inference import (
    CANNOT_TELL,
    HOLDS,
    REVERSED,
    SMALLER,
    Difference,
    Variance,
    difference,
    gap_pseudo_values,
    holm,
    power,
    pseudo_values,
    verdict,
)
from pullpush.metrics.retrieval import audio_text, by_clip, caption_relevance, ranks, retrieval, retrieval_per_query
from pullpush.metrics.zero_shot import zero_shot, zero_shot_predictions

__all__ = [
    "CANNOT_TELL",
    "HOLDS",
    "REVERSED",
    "SMALLER",
    "Difference",
    "Variance",
    "alignment",
    "angle",
    "audio_text",
    "by_clip",
    "caption_relevance",
    "difference",
    "direction_error",
    "distance",
    "gap",
    "gap_pseudo_values",
    "holm",
    "language_ranks",
    "mean_rank_variance",
    "power",
    "pseudo_values",
    "rank_variance",
    "ranks",
    "retrieval",
    "retrieval_per_query",
    "uniformity",
    "verdict",
    "zero_shot",
    "zero_shot_predictions",
]

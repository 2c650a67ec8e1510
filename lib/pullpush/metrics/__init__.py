"""Metrics: retrieval, zero-shot classification, geometry of the space, consistency, and how sure we are."""

from pullpush.metrics._ragged import by_caption
from pullpush.metrics._retrieval import audio_text, by_clip, caption_relevance, ranks, retrieval, retrieval_per_query
from pullpush.metrics._zero_shot import zero_shot, zero_shot_predictions
from pullpush.metrics.cards import METRICS, Embeddings, MetricCard, Score, Values
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
    holm,
    power,
    verdict,
)
from pullpush.metrics.jackknife import gap_pseudo_values, pseudo_values

__all__ = [
    "CANNOT_TELL",
    "HOLDS",
    "METRICS",
    "REVERSED",
    "SMALLER",
    "Difference",
    "Embeddings",
    "MetricCard",
    "Score",
    "Values",
    "Variance",
    "alignment",
    "angle",
    "audio_text",
    "by_caption",
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

"""Metrics: retrieval, zero-shot classification, geometry of the space, and how sure we are."""

from pullpush.metrics.geometry import alignment, uniformity
from pullpush.metrics.retrieval import audio_text, caption_relevance, ranks, retrieval, retrieval_per_query
from pullpush.metrics.significance import Interval, bootstrap_interval, paired_bootstrap
from pullpush.metrics.zero_shot import zero_shot, zero_shot_predictions

__all__ = [
    "Interval",
    "alignment",
    "audio_text",
    "bootstrap_interval",
    "caption_relevance",
    "paired_bootstrap",
    "ranks",
    "retrieval",
    "retrieval_per_query",
    "uniformity",
    "zero_shot",
    "zero_shot_predictions",
]

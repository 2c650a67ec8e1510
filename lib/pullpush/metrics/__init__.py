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
from pullpush.metrics.retrieval import audio_text, caption_relevance, ranks, retrieval, retrieval_per_query
from pullpush.metrics.significance import Interval, bootstrap_interval, paired_bootstrap
from pullpush.metrics.weight_error import (
    MomentumError,
    Step,
    WeightError,
    language_plan,
    log_probability,
    momentum_errors,
    pair_distribution,
    weight_error_bound,
    weight_errors,
)
from pullpush.metrics.zero_shot import zero_shot, zero_shot_predictions

__all__ = [
    "Interval",
    "MomentumError",
    "Step",
    "WeightError",
    "alignment",
    "angle",
    "audio_text",
    "bootstrap_interval",
    "caption_relevance",
    "direction_error",
    "distance",
    "gap",
    "language_plan",
    "language_ranks",
    "log_probability",
    "mean_rank_variance",
    "momentum_errors",
    "pair_distribution",
    "paired_bootstrap",
    "rank_variance",
    "ranks",
    "retrieval",
    "retrieval_per_query",
    "uniformity",
    "weight_error_bound",
    "weight_errors",
    "zero_shot",
    "zero_shot_predictions",
]

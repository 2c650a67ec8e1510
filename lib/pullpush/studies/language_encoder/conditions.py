"""What is known of a world and its text encoder before training, beside what a sentence term added there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import special
from torch import nn

from pullpush.data.clips import World
from pullpush.data.language.word_counts import word_frequencies
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores
from pullpush.studies.language_encoder.gains import Metric, Pair, gain
from pullpush.studies.language_encoder.geometry import encoder_uniformity

# Fact → how a sentence names it, and how its numbers are written.
FACTS: Mapping[str, tuple[str, str]] = {
    "log size": ("log₁₀ of the number of training clips", ".2f"),
    "vocabulary": ("the number of different words", ".0f"),
    "entropy": ("the words' entropy in bits", ".1f"),
    "ten words": ("the share of the ten most frequent words", ".2f"),
    "uniformity before": ("the uniformity loss of the text encoder before training", ".2f"),
    "pictures": ("whether clips are pictures (1)", ".1f"),
}
COLUMNS = ["condition", "baseline", "value", "low", "high", "error", "seeds", "clips"]


def caption_facts(captions: Iterable[str], clips: int) -> dict[str, float]:
    """What is known of a world's training captions: "log size" of its clips, "vocabulary", "entropy", "ten words".

    >>> caption_facts(["a dog", "a cat"], 100)
    {'log size': 2.0, 'vocabulary': 3.0, 'entropy': 1.5, 'ten words': 1.0}
    """
    share = word_frequencies(captions, vocabulary=10**9)["frequency"].to_numpy()
    entropy = float(-(share * np.log2(share)).sum())
    return {
        "log size": float(np.log10(clips)), "vocabulary": float(len(share)), "entropy": entropy,
        "ten words": min(float(share[:10].sum()), 1.0),
    }  # fmt: skip


def world_facts(world: World, model: nn.Module, *, count: int = 1000) -> dict[str, float]:
    """`caption_facts` of a world, and how uniform a model's text encoder is on its captions before training.

    world: its training captions count; model: before its first step; count: clips whose first captions it reads.
    """
    several = world.train.captions("eng")
    read = [texts[0] for texts in several[:count]]
    found = caption_facts((text for texts in several for text in texts), len(several))
    return found | {"uniformity before": encoder_uniformity(model, read)}


def conditions(
    scores: Scores, pairs: Sequence[Pair], points: Mapping[str, Where], facts: Mapping[str, Mapping[str, float]],
    metric: Metric = "R@1",
) -> pd.DataFrame:  # fmt: skip
    """What is known of each condition, and what the term added there; of several experiments, to be concatenated.

    Args:
        pairs: (with the term, without it), such as both base systems'.
        points: condition → where; those that were not trained are left out.
        facts: condition → name → number, such as those of FACTS.

    Returns:
        A row a condition and pair: condition, baseline, value, low, high (fractions), error (standard error), seeds,
        clips, and the facts.
    """
    rows = []
    for point, where in points.items():
        for pair in pairs:
            try:
                one = gain(scores, pair, metric, where).difference
            except ExperimentError:
                continue
            error = one.half_width / special.stdtrit(one.df, (1 + one.level) / 2)
            head = (point, pair[1], one.value, one.low, one.high, float(error), one.seeds, one.clips)
            rows.append(dict(zip(COLUMNS, head, strict=True)) | dict(facts[point]))
    return pd.DataFrame(rows, columns=None if rows else COLUMNS)

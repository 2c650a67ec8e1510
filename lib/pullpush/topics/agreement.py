"""How far two partitions of captions agree, such as the topics of two seeds; a control without content."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics

from pullpush.topics.density import OUTLIER
from pullpush.topics.words import TopicsError


def agreement(labels: ArrayLike, classes: ArrayLike) -> dict[str, float]:
    """Agreement of topics with classes, over the captions that have both.

    * AMI: mutual information, adjusted: 0 for what chance gives, 1 for equal partitions (Vinh et al. 2010).
    * ARI: the share of pairs of captions on which both agree, adjusted likewise (Hubert & Arabie 1985).
    * NMI, V-measure: mutual information by the mean entropy, two names of one number; not adjusted, so that it grows
      with the number of topics alone. homogeneity: whether a topic holds one class; completeness: whether a class lies
      in one topic.
    * labelled: the share of captions that are compared, the others being outliers.

    Args:
        labels: `(N,)` topics, OUTLIER where a caption has none.
        classes: `(N,)` of any kind, OUTLIER or "" where a caption has none.

    Raises:
        TopicsError: other lengths, or no caption that has both.

    >>> found = agreement([0, 0, 1, 1, -1], ["dog", "dog", "rain", "rain", "rain"])
    >>> found["AMI"], found["labelled"]
    (1.0, 0.8)
    """
    ours, theirs = np.asarray(labels), np.asarray(classes)
    if ours.shape != theirs.shape or ours.ndim != 1:
        raise TopicsError(f"a label and a class a caption are compared: got {ours.shape} and {theirs.shape}")
    if any(each is None for each in theirs.tolist()):
        raise TopicsError('a caption without a class has the class "" or -1, not None')
    missing = "" if theirs.dtype.kind in "UO" else OUTLIER
    kept = (ours != OUTLIER) & (theirs != missing)
    if not kept.any():
        raise TopicsError("nothing to compare: every caption is an outlier, or has no class")
    a, b = ours[kept], theirs[kept]
    homogeneity, completeness, v_measure = metrics.homogeneity_completeness_v_measure(b, a)
    return {
        "AMI": float(metrics.adjusted_mutual_info_score(b, a)),
        "ARI": float(metrics.adjusted_rand_score(b, a)),
        "NMI": float(metrics.normalized_mutual_info_score(b, a)),
        "V-measure": float(v_measure),
        "homogeneity": float(homogeneity),
        "completeness": float(completeness),
        "labelled": float(kept.mean()),
    }


def shuffled(labels: ArrayLike, *, seed: int = 0) -> NDArray[np.int64]:
    """The same labels dealt out at random: topics of equal sizes that mean nothing, the control for all that they do.

    >>> sorted(shuffled([0, 0, 1], seed=3).tolist())
    [0, 0, 1]
    """
    return np.random.default_rng(seed).permutation(np.asarray(labels, np.int64))

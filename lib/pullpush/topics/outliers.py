"""Outliers: how likely each caption belongs to each topic, and captions of no topic given to one.

HDBSCAN leaves out what lies in no dense region, often a third of all captions, and a classification head needs a label
for each. BERTopic's `reduce_outliers` offers several ways, of which three are here:

* "probabilities": the topic that is most probable by the soft clustering of `hdbscan`. That is a product of two
  memberships, by distance and by the tree of densities; scikit-learn's HDBSCAN keeps no such tree, and gives each
  caption the probability of its own cluster alone. Here it is the membership by distance, as `hdbscan` defines it:

      P(k | x) = (1 / d_k(x)) / Σ_j (1 / d_j(x)),    d_k(x): distance from x to the nearest exemplar of topic k,

  with the densest captions of a topic for its exemplars: those that its HDBSCAN probability is 1 of.
* "embeddings": the topic whose mean embedding has the highest cosine with that of the caption.
* "c-tf-idf": the topic whose weighted words have the highest cosine with those of the caption; a caption that shares no
  word with any topic stays an outlier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from pullpush.errors import unknown
from pullpush.topics.words import by_class, class_tfidf, count_words, rarity

OUTLIER = -1  # the label of a caption that belongs to no topic
STRATEGIES = ("probabilities", "embeddings", "c-tf-idf", "keep")  # "keep": outliers stay outliers
Array = NDArray[np.float64]


def memberships(points: NDArray[np.float32], labels: NDArray[np.int64], strength: Array) -> Array:
    """P(k | x) of every caption and topic by the distance to exemplars, `(N, K)`; rows sum to 1.

    Args:
        points: `(N, d)`, where density was measured.
        labels: `(N,)`, 0 to K − 1 or OUTLIER.
        strength: `(N,)`, HDBSCAN's probability of the own cluster.

    >>> memberships(np.float32([[0], [1], [4]]), np.array([0, -1, 1]), np.array([1.0, 0.0, 1.0])).round(2).tolist()
    [[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]]
    """
    nearest = []
    for topic in range(labels.max() + 1):
        members = labels == topic
        exemplars = points[members & (strength >= strength[members].max())]
        nearest.append(cdist(points, exemplars).min(axis=1))
    # An exemplar has distance 0 from itself: far below any distance in float32, it has all of the probability.
    weight = 1 / np.maximum(np.stack(nearest, axis=1), 1e-12)
    return weight / weight.sum(axis=1, keepdims=True)


def reassigned(
    labels: NDArray[np.int64],
    strategy: str,
    *,
    probabilities: Array,
    embeddings: NDArray[np.float32],
    texts: Sequence[str],
) -> NDArray[np.int64]:
    """Labels in which outliers have the topic that a strategy gives them; the others keep theirs.

    Raises:
        UnknownNameError: another strategy.
    """
    if strategy not in STRATEGIES:
        raise unknown("strategy for outliers", strategy, STRATEGIES)
    outliers = labels == OUTLIER
    if strategy == "keep" or not outliers.any():
        return labels
    if strategy == "probabilities":
        likeness = probabilities
    elif strategy == "embeddings":
        likeness = cosines(embeddings, topic_means(embeddings, labels))
    else:
        likeness = _by_words(texts, labels)
    best = likeness.argmax(axis=1)
    if strategy == "c-tf-idf":
        best[likeness.max(axis=1) <= 0] = OUTLIER
    return np.where(outliers, best, labels).astype(np.int64)


def topic_means(embeddings: NDArray[np.float32], labels: NDArray[np.int64]) -> Array:
    """The mean embedding of each topic, `(K, d)` float64."""
    return np.stack([embeddings[labels == topic].mean(axis=0, dtype=np.float64) for topic in range(labels.max() + 1)])


def cosines(one: NDArray, other: NDArray) -> Array:
    """Of all rows of `(N, d)` with all rows of `(K, d)`: `(N, K)`; a row of zeros has none with any."""
    sides = (np.asarray(side, np.float64) for side in (one, other))
    a, b = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in sides)
    return a @ b.T


def _by_words(texts: Sequence[str], labels: NDArray[np.int64]) -> Array:
    """The cosine of the weighted words of captions and topics, `(N, K)`; outliers are a class of their own."""
    counts, _ = count_words(texts)
    classes = by_class(counts, labels)
    weighed = counts.multiply(rarity(classes)).tocsr()
    topics = class_tfidf(classes)[-(int(labels.max()) + 1) :]
    lengths = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())[:, None]
    return weighed @ topics.T / np.maximum(lengths * np.linalg.norm(topics, axis=1), 1e-12)

"""Fewer topics: the most alike are merged until as many are left as asked for, as BERTopic's `nr_topics` does.

Which two go first is decided by small differences, so that two runs whose topics agree may agree less once these are
merged: `stability(…, count=K)` beside `stability(…)` says how much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering

from pullpush.errors import unknown
from pullpush.topics.checks import TopicsError
from pullpush.topics.outliers import OUTLIER, Array, cosines, topic_means
from pullpush.topics.words import by_class, class_tfidf, count_words

LIKENESS = ("c-tf-idf", "embeddings")


def merged(
    labels: NDArray[np.int64],
    count: int,
    *,
    by: str,
    embeddings: NDArray[np.float32],
    texts: Sequence[str],
) -> NDArray[np.int64]:
    """Labels of `count` topics: agglomerative clustering of the topics, average linkage, cosine distance.

    Args:
        labels: `(N,)`, 0 to K − 1 or OUTLIER, which stays.
        count: topics to keep, outliers not among them (BERTopic counts them as one).
        by: "c-tf-idf", the weighted words of a topic, or "embeddings", their mean.
        embeddings: `(N, d)`.
        texts: N captions.

    Raises:
        TopicsError: one topic is asked for, or more than there are.
        UnknownNameError: another likeness.
    """
    if by not in LIKENESS:
        raise unknown("likeness of topics", by, LIKENESS)
    found = int(labels.max()) + 1
    if count < 2:
        raise TopicsError(f"one topic that holds every caption teaches nothing: count must be 2 or more, got {count}")
    if count > found:
        raise TopicsError(f"{found} topics were found, and {count} are asked for: lower min_size to find more")
    if count == found:
        return labels
    if by == "embeddings":
        topics: Array = topic_means(embeddings, labels)
    else:
        topics = class_tfidf(by_class(count_words(texts)[0], labels))[-found:]  # without the row of outliers
    distance = np.maximum(1 - cosines(topics, topics), 0)
    np.fill_diagonal(distance, 0)
    joined = AgglomerativeClustering(count, metric="precomputed", linkage="average").fit(distance).labels_
    return np.where(labels == OUTLIER, OUTLIER, joined[labels]).astype(np.int64)


def by_size(labels: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The new label of each label, 0 for the largest topic; of equally large ones the first met goes first.

    weights: how often each caption counts, `(N,)`; None: once.

    >>> by_size(np.array([1, 0, -1, 1])).tolist()
    [1, 0]
    """
    kept = labels != OUTLIER
    topics, first = np.unique(labels[kept], return_index=True)
    sizes = np.bincount(labels[kept], None if weights is None else weights[kept], minlength=len(topics))
    new = np.empty(len(topics), np.int64)
    new[np.lexsort((first, -sizes))] = np.arange(len(topics))
    return new

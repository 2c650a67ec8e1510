"""Captions into topics, in BERTopic's manner (Grootendorst 2022), with the same answer on every run.

Its users report other topics from run to run. Here captions are sorted by what they say before anything is drawn, UMAP
has one seed and one thread, and what was found is kept by content. What other seeds and orders would have found is for
`stability` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import AgglomerativeClustering

from pullpush.errors import unknown
from pullpush.topics.checks import TopicsError, check_captions
from pullpush.topics.density import Dense, Density, dense
from pullpush.topics.outliers import OUTLIER, cosines, memberships, reassigned, topic_means
from pullpush.topics.words import Words, by_class, class_tfidf, count_words, topic_words

LIKENESS = ("c-tf-idf", "embeddings")


@dataclass(frozen=True, eq=False)
class Topics:
    """N captions in K topics, the largest first.

    labels: `(N,)` int64, outliers reassigned; found: the same before that, OUTLIER where HDBSCAN left a caption out.
    probabilities: `(N, K)` float64, see `outliers`; strength: `(N,)`, HDBSCAN's own, 0 for outliers.
    points: `(N, dimensions)` float32, where UMAP put them; words: of each topic, with weights, heaviest first.
    """

    labels: NDArray[np.int64]
    found: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    strength: NDArray[np.float64]
    points: NDArray[np.float32]
    words: tuple[Words, ...]

    @property
    def count(self) -> int:
        """K."""
        return self.probabilities.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Captions of each topic, `(K,)`, without those that stayed outliers."""
        return np.bincount(self.labels[self.labels != OUTLIER], minlength=self.count)

    @property
    def outliers(self) -> float:
        """The share of captions that HDBSCAN left out."""
        return float((self.found == OUTLIER).mean())

    def named(self, words: int = 3) -> tuple[str, ...]:
        """A name for each topic: its heaviest words."""
        return tuple(", ".join(word for word, _ in topic[:words]) for topic in self.words)

    def table(self, words: int = 5) -> pd.DataFrame:
        """A row a topic: topic, captions, found (those of them that were no outliers), words."""
        rows = zip(range(self.count), self.sizes, self.named(words), strict=True)
        return pd.DataFrame(
            [(topic, int(size), int((self.found == topic).sum()), name) for topic, size, name in rows],
            columns=["topic", "captions", "found", "words"],
        )


def cluster(
    embeddings: ArrayLike,
    texts: Sequence[str],
    *,
    seed: int = 0,
    count: int | None = None,
    how: Density | None = None,
    outliers: str = "probabilities",
    merge: str = "c-tf-idf",
    keep_order: bool = False,
    keep_repeats: bool = False,
) -> Topics:
    """Topics of N captions: UMAP, HDBSCAN, the most alike merged, outliers reassigned, words by class-based TF-IDF.

    A caption that occurs several times is clustered once, and all its occurrences have one label: a heap of equal
    points would be the densest region there is, and neighbours of a point would all be its copies.

    Args:
        embeddings: `(N, d)` finite numbers, of any text encoder; cosine is what counts.
        texts: N captions.
        seed: of UMAP.
        count: topics to merge down to; None keeps those that are found.
        how: see `Density`; None: BERTopic's defaults.
        outliers: "probabilities", "embeddings", "c-tf-idf", or "keep"; see `pullpush.topics.outliers`.
        merge: what makes two topics alike, "c-tf-idf" or "embeddings".
        keep_order: cluster captions in the order given, as BERTopic does, in place of sorted by content.
        keep_repeats: count a caption as often as it occurs, as BERTopic does.

    Raises:
        TopicsError: NaN, too few captions, nothing but outliers, one topic, or more topics asked for than are found.
        UnknownNameError: another name of a strategy.

    Example:
        >>> near = np.eye(4, 16).repeat(25, axis=0) + np.random.default_rng(0).normal(0, 0.02, (100, 16))
        >>> told = [f"{what} {number}" for what in ("dog", "rain", "bell", "sea") for number in range(25)]
        >>> cluster(near, told, how=Density(dimensions=0)).sizes.tolist()
        [25, 25, 25, 25]
    """
    values = check_captions(embeddings, texts)
    rows, place = arranged(values, texts, keep_order=keep_order, keep_repeats=keep_repeats)
    chosen, said = values[rows], [texts[row] for row in rows]
    region = dense(chosen, how or Density(), seed=seed)
    return gathered(region, chosen, said, place, count=count, outliers=outliers, merge=merge)


def gathered(
    region: Dense,
    chosen: NDArray[np.float32],
    said: Sequence[str],
    place: NDArray[np.int64],
    *,
    count: int | None,
    outliers: str,
    merge: str,
) -> Topics:
    """Topics of all captions from the dense regions of those that were clustered; see `cluster`.

    chosen: `(M, d)`, embeddings of those, and said: their texts; place: `(N,)`, where each caption is among them.
    """
    fine = _renamed(region.labels, by_size(region.labels))
    found = fine if count is None else merged(fine, count, by=merge, embeddings=chosen, texts=said)
    likely = memberships(region.points, fine, region.strength) @ _parts(fine, found)
    labels = reassigned(found, outliers, probabilities=likely, embeddings=chosen, texts=said)
    new = by_size(labels, np.bincount(place))
    every = _renamed(labels, new)[place]
    words = topic_words([said[row] for row in place], every)
    return Topics(
        labels=every,
        found=_renamed(found, new)[place],
        probabilities=likely[:, np.argsort(new)][place],
        strength=region.strength[place],
        points=region.points[place],
        words=tuple(words[topic] for topic in range(len(new))),
    )


def arranged(
    values: NDArray[np.float32], texts: Sequence[str], *, keep_order: bool, keep_repeats: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which captions are clustered, in order, `(M,)` rows, and where among them each caption is found, `(N,)`."""
    keys = [(text, row.tobytes()) for text, row in zip(texts, values, strict=True)]
    rows, place = [], np.empty(len(texts), np.int64)
    places: dict[tuple[str, bytes], int] = {}
    for row in range(len(keys)) if keep_order else sorted(range(len(keys)), key=keys.__getitem__):
        if keep_repeats or keys[row] not in places:
            places[keys[row]] = len(rows)
            rows.append(row)
        place[row] = places[keys[row]]
    return np.array(rows, np.int64), place


def merged(
    labels: NDArray[np.int64],
    count: int,
    *,
    by: str,
    embeddings: NDArray[np.float32],
    texts: Sequence[str],
) -> NDArray[np.int64]:
    """Labels of `count` topics: agglomerative clustering of the topics, average linkage, cosine distance.

    Which two go first is decided by small differences, so that two runs whose topics agree may agree less once these
    are merged: `stability(…, count=K)` beside `stability(…)` says how much.

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
        topics = topic_means(embeddings, labels)
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


def _parts(fine: NDArray[np.int64], coarse: NDArray[np.int64]) -> NDArray[np.float64]:
    """Which topics were merged into which, `(fine, coarse)` of 0 and 1: a merged topic has its parts' probabilities."""
    belongs = np.zeros((fine.max() + 1, coarse.max() + 1))
    belongs[fine[fine != OUTLIER], coarse[fine != OUTLIER]] = 1
    return belongs


def _renamed(labels: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(labels == OUTLIER, OUTLIER, new[labels])

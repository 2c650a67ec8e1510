"""Captions into topics, in BERTopic's manner (Grootendorst 2022), with the same answer on every run.

Its users report other topics from run to run. Here captions are sorted by what they say before anything is drawn, UMAP
has one seed and one thread, and what was found is kept by content. What another seed would have found, the
`agreement` of both says.

HDBSCAN leaves out what lies in no dense region, often a third of all captions, and a classification head needs a label
for each. Of BERTopic's ways three are here: "probabilities" (see `memberships`), "embeddings" (the topic whose mean has
the highest cosine with the caption) and "c-tf-idf" (of their weighted words; who shares none stays an outlier).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn import metrics
from sklearn.cluster import AgglomerativeClustering

from pullpush.errors import check_known
from pullpush.topics.density import OUTLIER, Dense, Density, check_captions, dense
from pullpush.topics.words import TopicsError, Words, by_class, class_tfidf, count_words, rarity, topic_words

STRATEGIES = ("probabilities", "embeddings", "c-tf-idf", "keep")  # "keep": outliers stay outliers
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
        outliers: "probabilities", "embeddings", "c-tf-idf", or "keep"; see above.
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
    labels: NDArray[np.int64], count: int, *, by: str, embeddings: NDArray[np.float32], texts: Sequence[str]
) -> NDArray[np.int64]:
    """Labels of `count` topics: agglomerative clustering of the topics, average linkage, cosine distance.

    Which two go first is decided by small differences, so that two runs whose topics agree may agree less once these
    are merged: their `agreement` with `count` beside that without says how much. labels: `(N,)`, 0 to K − 1 or OUTLIER,
    which stays; count: without the outliers (BERTopic counts them as one); by: "c-tf-idf", the weighted words of a
    topic, or "embeddings", their mean.
    """
    check_known("likeness of topics", by, LIKENESS)
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
    distance = metrics.pairwise.cosine_distances(topics)
    joined = AgglomerativeClustering(count, metric="precomputed", linkage="average").fit(distance).labels_
    return np.where(labels == OUTLIER, OUTLIER, joined[labels]).astype(np.int64)


def memberships(
    points: NDArray[np.float32], labels: NDArray[np.int64], strength: NDArray[np.float64]
) -> NDArray[np.float64]:
    """P(k | x) = (1 / d_k(x)) / Σ_j (1 / d_j(x)) of every caption and topic, `(N, K)`; rows sum to 1.

    That is membership by distance as the package `hdbscan` defines it: d_k(x) is the distance from x to the nearest
    exemplar of topic k, which are its densest captions. `hdbscan` multiplies it by one by the tree of densities, which
    scikit-learn does not keep.

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
    probabilities: NDArray[np.float64],
    embeddings: NDArray[np.float32],
    texts: Sequence[str],
) -> NDArray[np.int64]:
    """Labels in which outliers have the topic that a strategy gives them; the others keep theirs."""
    check_known("strategy for outliers", strategy, STRATEGIES)
    outliers = labels == OUTLIER
    if strategy == "keep" or not outliers.any():
        return labels
    if strategy == "probabilities":
        likeness = probabilities
    elif strategy == "embeddings":
        likeness = metrics.pairwise.cosine_similarity(embeddings, topic_means(embeddings, labels))
    else:
        counts, _ = count_words(texts)
        classes = by_class(counts, labels)  # outliers are one of their own
        topics = class_tfidf(classes)[-(int(labels.max()) + 1) :]
        likeness = metrics.pairwise.cosine_similarity(counts.multiply(rarity(classes)), topics)
    best = likeness.argmax(axis=1)
    if strategy == "c-tf-idf":
        best[likeness.max(axis=1) <= 0] = OUTLIER
    return np.where(outliers, best, labels).astype(np.int64)


def topic_means(embeddings: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean embedding of each topic, `(K, d)` float64."""
    return np.stack([embeddings[labels == topic].mean(axis=0, dtype=np.float64) for topic in range(labels.max() + 1)])


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


# ---------------------------------------------------------------- how far two partitions agree


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
    kept = (ours != OUTLIER) & ~np.isin(theirs.astype(str), ["", str(OUTLIER)])
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

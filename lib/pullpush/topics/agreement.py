"""How far two partitions of captions agree, a control without content, and what other seeds and orders find."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics
from tqdm.auto import tqdm

from pullpush.progress import hidden
from pullpush.topics.checks import TopicsError, check_captions
from pullpush.topics.clustering import Topics, cluster
from pullpush.topics.outliers import OUTLIER


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


def stability(
    embeddings: ArrayLike,
    texts: Sequence[str],
    *,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    orders: int = 5,
    **settings: Any,
) -> pd.DataFrame:
    """Agreement of the topics that every two runs find, when nothing differs but UMAP's seed or the captions' order.

    Args:
        embeddings: `(N, d)`.
        texts: N captions.
        seeds: of UMAP; captions are sorted.
        orders: random orders of the captions, all with the first seed; the captions as given are not among them.
        settings: of `cluster`, but for seed and keep_order.

    Returns:
        A row a pair of runs: varies ("seed" or "order"), first, second (which seeds, or numbers of orders), topics and
        topics_second, how many each finds, outliers (the mean share that HDBSCAN left out), and of both partitions
        AMI, ARI and V-measure, outliers reassigned as the settings say.

    Raises:
        TopicsError: as `cluster`, and where there are no two runs to compare.
    """
    if max(len(set(seeds)), orders) < 2 or not len(seeds):
        raise TopicsError(f"stability compares two runs at least: got seeds={tuple(seeds)}, orders={orders}")
    values = check_captions(embeddings, texts)
    runs: list[tuple[str, int, Topics, NDArray[np.int64]]] = []
    for seed in tqdm(dict.fromkeys(seeds), "topics by seed", leave=False, disable=hidden()):
        found = cluster(values, texts, seed=seed, **settings)
        runs.append(("seed", seed, found, found.labels))
    for number in tqdm(range(orders), "topics by order", leave=False, disable=hidden()):
        rows = np.random.default_rng(number).permutation(len(texts))
        told = [texts[row] for row in rows]
        found = cluster(values[rows], told, seed=seeds[0], keep_order=True, **settings)
        runs.append(("order", number, found, found.labels[np.argsort(rows)]))
    table = []
    for (varies, first, one, ours), (also, second, other, theirs) in combinations(runs, 2):
        if varies == also:
            alike = agreement(ours, theirs)
            row = {"varies": varies, "first": first, "second": second}
            row |= {"topics": one.count, "topics_second": other.count, "outliers": (one.outliers + other.outliers) / 2}
            table.append(row | {name: alike[name] for name in ("AMI", "ARI", "V-measure")})
    return pd.DataFrame(table)

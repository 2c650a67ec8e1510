"""Whether other seeds and other orders of the same captions find the same topics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from tqdm.auto import tqdm

from pullpush.progress import hidden
from pullpush.topics.agreement import agreement
from pullpush.topics.checks import TopicsError, check_captions
from pullpush.topics.clustering import Topics, cluster

SEED, ORDER = "seed", "order"


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
    runs: dict[tuple[str, int], Topics] = {}
    for seed in tqdm(seeds, "topics by seed", leave=False, disable=hidden()):
        runs[SEED, seed] = cluster(values, texts, seed=seed, **settings)
    back = {}
    for number in tqdm(range(orders), "topics by order", leave=False, disable=hidden()):
        rows = np.random.default_rng(number).permutation(len(texts))
        told = [texts[row] for row in rows]
        runs[ORDER, number] = cluster(values[rows], told, seed=seeds[0], keep_order=True, **settings)
        back[ORDER, number] = np.argsort(rows)
    rows_of = [
        _compared(one, other, runs, back)
        for one, other in combinations(runs, 2)
        if one[0] == other[0]  # the same thing varies
    ]
    return pd.DataFrame(rows_of)


def _compared(
    one: tuple[str, int], other: tuple[str, int], runs: dict[tuple[str, int], Topics], back: dict[Any, Any]
) -> dict[str, Any]:
    a, b = (runs[key].labels[back[key]] if key in back else runs[key].labels for key in (one, other))
    found = agreement(a, b)
    return {
        "varies": one[0],
        "first": one[1],
        "second": other[1],
        "topics": runs[one].count,
        "topics_second": runs[other].count,
        "outliers": (runs[one].outliers + runs[other].outliers) / 2,
        **{name: found[name] for name in ("AMI", "ARI", "V-measure")},
    }

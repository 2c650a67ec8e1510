"""Where captions are dense: UMAP to a few dimensions, then HDBSCAN, as BERTopic does, the same on every run.

UMAP (McInnes et al. 2018) draws random numbers, and with several threads adds them up in any order: here it has one
thread and one seed. HDBSCAN (Campello et al. 2013) draws none; scikit-learn's counts a point among its own neighbours
and the package `hdbscan`, which BERTopic uses, does not: `min_samples` is one more here, and both find the same.
"""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from pullpush.cache import cached_file, content_key
from pullpush.golden import versions
from pullpush.topics.words import TopicsError

OUTLIER = -1  # the label of a caption that belongs to no topic
FEW = 4096  # embeddings, of which UMAP takes all distances: by a Python call each, or, three times as fast, as given


@dataclass(frozen=True)
class Density:
    """How dense regions are sought; the defaults are BERTopic's.

    neighbours: of UMAP, fewer look at finer structure; dimensions: of the space that UMAP makes, 0 for no UMAP at all;
    min_dist: how near points may lie there; metric: of the embeddings; min_size: of a topic, in captions (different
    ones, unless `cluster` says else).
    """

    neighbours: int = 15
    dimensions: int = 5
    min_dist: float = 0.0
    metric: str = "cosine"
    min_size: int = 10


class Dense(NamedTuple):
    """What was found: `points (N, dimensions)` float32, `labels (N,)` int64 with OUTLIER, `strength (N,)` in [0, 1].

    strength: HDBSCAN's probability of the caption's own cluster, 0 for outliers.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int64]
    strength: NDArray[np.float64]


def check_captions(embeddings: ArrayLike, texts: Sequence[str]) -> NDArray[np.float32]:
    """The embeddings `(N, d)` as float32, once there is one of finite numbers for each text; else `TopicsError`."""
    if isinstance(embeddings, torch.Tensor):
        embeddings = embeddings.detach().float().cpu()
    values = np.asarray(embeddings, np.float32)
    if values.ndim != 2 or not values.shape[1]:
        raise TopicsError(f"embeddings must be (N, d), a row a caption: got {values.shape}")
    if isinstance(texts, str) or len(values) != len(texts):
        given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
        raise TopicsError(f"every caption needs its embedding: got {given} and {len(values)} embeddings")
    if not all(isinstance(text, str) for text in texts):
        raise TopicsError("captions must be texts: give one caption a row, not a list of captions")
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        raise TopicsError(f"NaN or infinity in the embeddings of captions {broken[:5].tolist()} ({len(broken)} in all)")
    return values


def dense(embeddings: NDArray[np.float32], how: Density, *, seed: int) -> Dense:
    """The dense regions of embeddings `(N, d)`, in the order given; read from the cache where they were found before.

    Raises:
        TopicsError: a topic is to have fewer than two captions, the space less than no dimensions, there are too few
            embeddings for two topics or for that space, or none are dense enough (what to change is said).
    """
    if how.dimensions < 0:
        raise TopicsError(f"dimensions of the reduced space must be 0 (none) or more, got {how.dimensions}")
    if how.min_size < 2:
        raise TopicsError(f"one caption is no topic: min_size must be 2 or more, got {how.min_size}")
    least = max(2 * how.min_size, how.dimensions + 3)  # UMAP's spectral start takes more points than dimensions
    if len(embeddings) < least:
        raise TopicsError(
            f"{len(embeddings)} different captions are too few for topics of min_size={how.min_size} in "
            f"{how.dimensions} dimensions: give {least} or more, or lower min_size"
        )
    tools = [f"{name} {version(name)}" for name in ("umap-learn", "numba", "scikit-learn", "numpy")]
    content = hashlib.sha256(np.ascontiguousarray(embeddings).tobytes()).hexdigest()
    key = content_key([content, list(embeddings.shape), how, seed, tools, versions("studies/regions")])

    def build(path: Path) -> None:
        np.savez(path, **search(embeddings, how, seed)._asdict())

    with np.load(cached_file("topics", f"{key}.npz", build)) as kept:
        found = Dense(kept["points"], kept["labels"], kept["strength"])
    if (found.labels == OUTLIER).all():
        raise TopicsError(
            f"no topics: all of {len(embeddings)} captions are outliers at min_size={how.min_size}; lower min_size, or "
            "give more captions"
        )
    return found


def search(embeddings: NDArray[np.float32], how: Density, seed: int) -> Dense:
    """What `dense` keeps, found anew; all captions may be outliers."""
    from sklearn.cluster import HDBSCAN

    with threadpool_limits(1):
        points = _reduced(embeddings, how, seed)
        found = HDBSCAN(
            min_cluster_size=how.min_size,
            min_samples=min(how.min_size + 1, len(points)),  # the point itself is counted
            cluster_selection_method="eom",
            copy=True,
        ).fit(points.astype(np.float64))
    return Dense(points, found.labels_.astype(np.int64), found.probabilities_.astype(np.float64))


def _reduced(embeddings: NDArray[np.float32], how: Density, seed: int) -> NDArray[np.float32]:
    """Where HDBSCAN looks, `(N, dimensions)`; without UMAP the embeddings, of unit length if their cosine counts."""
    if how.dimensions == 0:
        length = np.linalg.norm(embeddings, axis=1, keepdims=True) if how.metric == "cosine" else 1.0
        return (embeddings / np.maximum(length, 1e-12)).astype(np.float32)
    from umap import UMAP  # compiles itself for half a minute, and only a search that nobody made before needs it
    from umap.distances import pairwise_special_metric

    given, options = embeddings, umap_options(len(embeddings), how, seed)
    if options["metric"] == "precomputed":
        given = pairwise_special_metric(embeddings, metric=how.metric).astype(np.float32).clip(min=0)  # −1e-8 on Intel
    with warnings.catch_warnings(action="ignore"):
        # UMAP tells that a seed takes one thread, which is what we ask for, and what it cannot do with distances.
        found = UMAP(**options).fit_transform(given)
    return np.asarray(found, np.float32)


def umap_options(count: int, how: Density, seed: int) -> dict[str, Any]:
    """What UMAP is asked for, of so many embeddings."""
    return {
        "n_neighbors": min(how.neighbours, count - 1),
        "n_components": how.dimensions,
        "min_dist": how.min_dist,
        "metric": "precomputed" if how.metric == "cosine" and count < FEW else how.metric,
        "random_state": seed,
        "n_jobs": 1,
    }

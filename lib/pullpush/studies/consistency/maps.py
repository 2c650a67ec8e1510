"""Two-dimensional maps of clips and their captions in many languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.parallel import side_by_side
from pullpush.studies.consistency.space import Space


def projected(
    embedded: Mapping[str, Space],
    items: Sequence[int],
    *,
    methods: Sequence[str] = ("t-SNE", "UMAP"),
    seed: int = 0,
    languages: Sequence[str] = LANGUAGES,
) -> pd.DataFrame:
    """Two-dimensional maps of some clips and their first captions: columns system, method, item, language, x, y.

    language "audio" is the clip itself. The methods run side by side.
    """
    points = {name: _points(space, list(items)) for name, space in embedded.items()}
    placed = side_by_side([partial(_placed, list(points.values()), method, seed) for method in methods])
    told = ("audio", *languages[: next(iter(embedded.values())).texts.shape[2]])
    names = [(item, language) for item in range(len(items)) for language in told]
    tables = [
        pd.DataFrame(names, columns=["item", "language"]).assign(system=system, method=method, x=at[:, 0], y=at[:, 1])
        for method, places in zip(methods, placed, strict=True)
        for system, at in zip(points, places, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["system", "method", "item", "language", "x", "y"]]


def _points(space: Space, items: list[int]) -> np.ndarray:
    """Each clip, then its first captions, `(M · (1 + K), d)`."""
    return torch.cat([space.audio[items, None], space.texts[items, 0]], dim=1).flatten(0, 1).numpy()


def _placed(several: Sequence[np.ndarray], method: str, seed: int) -> list[np.ndarray]:
    """Maps of several sets of points by one method, `(P, 2)` each."""
    if method == "UMAP":
        import umap  # slow to import, and only maps need it

        return [
            umap.UMAP(n_neighbors=min(15, len(points) - 1), metric="cosine", random_state=seed, n_jobs=1).fit_transform(
                points
            )
            for points in several
        ]
    from sklearn.manifold import TSNE

    options = {"metric": "cosine", "init": "random", "random_state": seed}
    return [TSNE(perplexity=min(30, (len(points) - 1) // 3), **options).fit_transform(points) for points in several]


def map_tightness(table: pd.DataFrame) -> pd.DataFrame:
    """How tight the clusters of a map are: mean distance of a text to its item's centre over that to the map's centre.

    Columns: method, ratio. Small is tight.
    """
    rows = []
    for method, texts in table[table["language"] != "audio"].groupby("method", sort=False):
        centre = texts.groupby("item")[["x", "y"]].transform("mean")
        near = np.hypot(texts["x"] - centre["x"], texts["y"] - centre["y"]).mean()
        far = np.hypot(texts["x"] - texts["x"].mean(), texts["y"] - texts["y"].mean()).mean()
        rows.append((method, near / far))
    return pd.DataFrame(rows, columns=["method", "ratio"])


def tightness_table(tables: Mapping[str, pd.DataFrame], in_space: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """`map_tightness` of each system's map, and below it that in the space: columns where, and the systems.

    in_space: system → `space.tightness`.
    """
    on_maps = {name: map_tightness(table).set_index("method")["ratio"] for name, table in tables.items()}
    rows = pd.DataFrame(on_maps).rename_axis("where").reset_index()
    rows.loc[len(rows)] = {"where": "the space", **{name: values.mean() for name, values in in_space.items()}}
    return rows

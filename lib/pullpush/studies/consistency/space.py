"""A joint space with many languages: its embeddings, ranks in it, how tight a clip's captions lie, and maps of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.compute import embedded_captions
from pullpush.metrics import language_ranks, pseudo_values, rank_variance
from pullpush.parallel import in_threads, side_by_side
from pullpush.show.palette import method_name
from pullpush.studies.consistency.schemes import Runs
from pullpush.training.evaluate import embed_audio


class Space(NamedTuple):
    """Embeddings of a split: audio `(N, d)`; texts `(N, C, K, d)`, C captions in each of K languages."""

    audio: Tensor
    texts: Tensor

    @property
    def ranks(self) -> Tensor:
        """Rank of each clip for its first caption in each language, from 1: `(N, K)`."""
        return language_ranks(self.audio, self.texts[:, 0])


def embed(model: nn.Module, split: Clips, languages: Sequence[str] = LANGUAGES) -> Space:
    """Embed all clips and all their captions in all languages."""
    texts = torch.stack([embedded_captions(model, split, language) for language in languages], dim=2)
    return Space(embed_audio(model, split, batch_size=512), texts)


def spaces(runs: Runs, split: Clips, languages: Sequence[str] = LANGUAGES) -> dict[tuple[str, int], Space]:
    """The space of each run; see `embed`."""
    for language in languages:
        split.captions(language)  # written once, for all threads
    embedded = in_threads([partial(embed, run.model, split, languages) for run in runs.values()])
    return dict(zip(runs, embedded, strict=True))


# ---------------------------------------------------------------- single clips


def uneven(spaces: Mapping[str, Space]) -> dict[str, int]:
    """For each system the clip whose rank varies most over the languages; no clip twice."""
    found: dict[str, int] = {}
    for system, space in spaces.items():
        order = rank_variance(space.ranks).argsort(descending=True).tolist()
        found[system] = next(clip for clip in order if clip not in found.values())
    return found


def typical(space: Space) -> int:
    """The clip whose rank varies over the languages as much as that of the median clip."""
    order = rank_variance(space.ranks).argsort(stable=True)
    return int(order[len(order) // 2])


def clip_ranks(spaces: Mapping[str, Space], clip: int) -> dict[str, list[int]]:
    """A clip's ranks in each language, by the printed names of the systems."""
    return {method_name(system): space.ranks[clip].tolist() for system, space in spaces.items()}


def case_table(spaces: Mapping[str, Space], clips: Mapping[str, int], languages: Iterable[str]) -> pd.DataFrame:
    """Table 5: ranks of some clips in all spaces: columns worst of, clip, system, language, rank.

    clips: see `uneven`.
    """
    rows = [
        (worst, clip, system, *pair)
        for worst, clip in clips.items()
        for system, space in spaces.items()
        for pair in zip(languages, space.ranks[clip].tolist(), strict=True)
    ]
    return pd.DataFrame(rows, columns=["worst of", "clip", "system", "language", "rank"])


# ---------------------------------------------------------------- tightness


def tightness(spaces: Iterable[Space]) -> np.ndarray:
    """How tight a clip's first captions lie, `(seeds, clips)`: their mean distance to their centre over that to the
    centre of all clips' captions, as pseudo-values. Small is tight.
    """
    rows = []
    for texts in (space.texts[:, 0] for space in spaces):  # (N, K, d)
        near = (texts - texts.mean(1, keepdim=True)).norm(dim=-1).mean(1)
        far = (texts - texts.mean((0, 1))).norm(dim=-1).mean(1)
        distances = torch.stack([near, far], dim=1).double().numpy()
        rows.append(pseudo_values(lambda pair: pair[:, 0].mean() / pair[:, 1].mean(), distances))
    return np.stack(rows)


def maps(
    spaces: Mapping[str, Space],
    clips: Sequence[int],
    methods: Sequence[str],
    languages: Sequence[str] = LANGUAGES,
) -> pd.DataFrame:
    """Two-dimensional maps of some clips and their first captions: columns system, method, item, language, x, y.

    language "audio" is the clip itself. methods: "t-SNE", "UMAP"; they run side by side.
    """
    clips = list(clips)
    points = [  # of each system, a clip and then its captions, (M · (1 + K), d)
        torch.cat([space.audio[clips, None], space.texts[clips, 0]], dim=1).flatten(0, 1).numpy()
        for space in spaces.values()
    ]
    placed = side_by_side([partial(_placed, points, method) for method in methods])
    names = [(item, language) for item in range(len(clips)) for language in ("audio", *languages)]
    tables = [
        pd.DataFrame(names, columns=["item", "language"]).assign(system=system, method=method, x=at[:, 0], y=at[:, 1])
        for method, places in zip(methods, placed, strict=True)
        for system, at in zip(spaces, places, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["system", "method", "item", "language", "x", "y"]]


def _placed(several: Sequence[np.ndarray], method: str) -> list[np.ndarray]:
    """Maps of several sets of points by one method, `(P, 2)` each."""
    options = {"metric": "cosine", "random_state": 0}
    if method == "UMAP":
        import umap  # slow to import, and only maps need it

        return [
            umap.UMAP(n_neighbors=min(15, len(points) - 1), n_jobs=1, **options).fit_transform(points)
            for points in several
        ]
    from sklearn.manifold import TSNE

    return [
        TSNE(perplexity=min(30, (len(points) - 1) // 3), init="random", **options).fit_transform(points)
        for points in several
    ]


def map_tightness(table: pd.DataFrame) -> float:
    """How tight the clusters of one map are: mean distance of a text to its item's centre over that to the map's."""
    texts = table[table["language"] != "audio"]
    centre = texts.groupby("item")[["x", "y"]].transform("mean")
    near = np.hypot(texts["x"] - centre["x"], texts["y"] - centre["y"]).mean()
    return float(near / np.hypot(texts["x"] - texts["x"].mean(), texts["y"] - texts["y"].mean()).mean())

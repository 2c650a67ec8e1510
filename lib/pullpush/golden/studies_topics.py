"""Probes of topics: where captions are dense, what becomes of these regions, whose topic a clip has.

UMAP and HDBSCAN are not ours: what UMAP is asked for is looked at, not what it finds, and keys name its version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pullpush.data.clips import StoredClips
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.store import Waveforms
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.studies.distill import topic_labels as labels
from pullpush.topics.clustering import arranged, gathered
from pullpush.topics.density import FEW, Dense, Density, search, umap_options
from pullpush.topics.outliers import OUTLIER, STRATEGIES

TOLD = ("a dog barks", "the dog growls", "rain falls", "rain drips down", "a bell rings", "the bell tolls", "a motor")
EVENTS = ((0,), (2,), (1, 2), (2,), (0,))  # of five scenes


def regions() -> Values:
    """Dense regions of points around four centres and of a few between them; what UMAP is asked for."""
    centres = 4 * torch.eye(4, 6, dtype=torch.float64).repeat_interleave(9, dim=0)
    between = torch.tensor([[2.0, 2, 0, 0, 0, 0], [0, 0, 2, 2, 0, 0], [1, 1, 1, 1, 0, 9]], dtype=torch.float64)
    points = torch.cat([centres + 0.2 * numbers(36, 6, seed=1), between]).float().numpy()
    values: dict[str, Any] = {}
    for metric in ("cosine", "euclidean"):
        found = search(points, Density(dimensions=0, metric=metric, min_size=5), 0)
        values[f"{metric}: labels"] = found.labels
        values[f"{metric}: strength"] = found.strength
        values[f"{metric}: points"] = seen(found.points)
    for count, how in ((9, Density()), (FEW, Density(neighbours=5, dimensions=2)), (50, Density(metric="euclidean"))):
        values[f"UMAP of {count}"] = [[name, value] for name, value in sorted(umap_options(count, how, 3).items())]
    return values


def topics() -> Values:
    """Topics of captions in three regions and of outliers, by every strategy and likeness, some captions twice."""
    texts = [TOLD[place % len(TOLD)] for place in range(20)]
    embeddings = numbers(len(TOLD), 5, seed=2)[torch.arange(20) % len(TOLD)].float().numpy()
    rows, place = arranged(embeddings, texts, keep_order=False, keep_repeats=False)
    values: dict[str, Any] = {"rows": rows, "place": place}
    values["in order"], _ = arranged(embeddings, texts, keep_order=True, keep_repeats=False)
    values["repeats"], _ = arranged(embeddings, texts, keep_order=False, keep_repeats=True)
    known = np.array([TOLD.index(texts[row]) for row in rows])
    found = np.array([2, 2, 0, 0, 1, 1, OUTLIER])[known]
    strength = np.where(found == OUTLIER, 0.0, 0.5 + 0.5 * (known % 2))
    region = Dense(embeddings[rows][:, :3], found, strength)
    said = [texts[row] for row in rows]
    for outliers in STRATEGIES:
        for count, merge in ((None, "c-tf-idf"), (2, "c-tf-idf"), (2, "embeddings")):
            made = gathered(region, embeddings[rows], said, place, count=count, outliers=outliers, merge=merge)
            case = f"{outliers}, {count or 'all'} by {merge}"
            values[f"{case}: labels"] = np.stack([made.labels, made.found])
            values[f"{case}: likely"] = seen(np.concatenate([made.probabilities.T, made.strength[None]]))
            values[f"{case}: words"] = [[word for word, _ in topic[:3]] for topic in made.words]
            values[f"{case}: weights"] = [weight for topic in made.words for _, weight in topic[:3]]
    return values


def topic_labels() -> Values:
    """Topics of clips by their captions' and by what they are in truth; how finely topics are sought."""
    relation = {1: "single", 2: "overlap"}
    scenes = [Scene(tuple(Sound(one, 0, 0.0) for one in events), relation[len(events)], None, 1.0) for events in EVENTS]
    several = len(scenes)
    columns = {"scene": scenes}
    clips = StoredClips("probe", "probe", _silence(several), np.arange(several), columns, lambda *asked: [])
    classes = {kind: labels.Classes(kind) for kind in ("event", "events")}
    values: dict[str, Any] = {kind: each.of(clips, "eng") for kind, each in classes.items()}
    values["category"] = labels.Classes("category", ("animal", "water", "animal")).of(clips, "eng")
    values["shuffled"] = labels.Shuffled(classes["event"], seed=1).of(clips, "eng")
    found = np.array([2, 1, 2, OUTLIER, OUTLIER, 0, OUTLIER, 1, 0])
    values["of clips"] = labels.of_clips(found, [3, 2, 2, 2])
    for source in (labels.ByText(), labels.ByText(size=1, dimensions=0)):
        values[f"density at {source.size}"] = [list(vars(source.density(each)).values()) for each in (1, 5)]
    return values


def _silence(count: int) -> Waveforms:
    return Waveforms(np.zeros(count, np.int16), np.arange(1, count + 1))

"""Topics as the lab shows and judges them: examples to hear, the plane, the spread over seeds, what audio follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pullpush.data.clips import Clips
from pullpush.lab.ledger import Ledger
from pullpush.metrics.inference import difference
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.measures import by_seed
from pullpush.studies.distill.stages import MAIN, SYSTEMS
from pullpush.studies.distill.topic_labels import ByText, Labels
from pullpush.studies.distill.truth import followed
from pullpush.topics import OUTLIER, Density, Topics, agreement
from pullpush.topics.density import dense
from pullpush.training.evaluate import embed_audio

KIND = "set of events"  # the classes that claims are judged by: all that a caption tells
FLAT = 2


def examples(labels: NDArray[np.int64], *, topics: int = 3, each: int = 2) -> list[int]:
    """The first clips of the largest topics, by their numbers.

    >>> examples(np.array([1, 0, 0, 1, -1]), topics=2, each=1)
    [1, 0]
    """
    sizes = np.bincount(labels[labels != OUTLIER])
    largest = np.argsort(-sizes, kind="stable")[:topics]
    return [int(row) for topic in largest for row in np.flatnonzero(labels == topic)[:each]]


def plane(
    source: Labels, captions: Sequence[Sequence[str]], topics: Topics
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Where UMAP puts each different caption in two dimensions, `(M, 2)`, and its topic, `(M,)`.

    Without UMAP (where the source has none) the first two coordinates are shown.
    """
    texts = [text for several in captions for text in several]
    first = {text: row for row, text in reversed(list(enumerate(texts)))}
    rows = sorted(first.values())
    dimensions = FLAT if getattr(source, "dimensions", FLAT) else 0
    embeddings = source.embed(texts, "eng")[rows]  # pyrefly: ignore[missing-attribute]
    # Only the places count here, and not what is dense among them.
    points = dense(embeddings, Density(dimensions=dimensions, min_size=2), seed=getattr(source, "seed", 0)).points
    return points[:, :FLAT], topics.labels[rows]


def spread(ground: Grounds, clips: Clips, seeds: Sequence[int]) -> pd.DataFrame:
    """The agreement of topics of two seeds, of the clustering alone (generic embeddings) and of the model and it
    (finetuned): columns topics, first, second (seeds), AMI.
    """
    generic = ground.topics("generic", seeds[0])
    kinds: Mapping[str, list[Labels]] = {
        "generic": [_seeded(generic, seed) for seed in seeds],
        "finetuned": [ground.topics("finetuned", seed) for seed in seeds],
    }
    rows = []
    for name, sources in kinds.items():
        labels = [source.of(clips, "eng") for source in sources]
        rows += [
            (name, seeds[a], seeds[b], agreement(labels[a], labels[b])["AMI"])
            for a in range(len(seeds))
            for b in range(a + 1, len(seeds))
        ]
    return pd.DataFrame(rows, columns=["topics", "first", "second", "AMI"])


def _seeded(source: Labels, seed: int) -> Labels:
    return replace(source, seed=seed) if isinstance(source, ByText) else source


def judge_topics(
    ledger: Ledger, ground: Grounds, agreed: pd.DataFrame, labels: Mapping[str, NDArray[np.int64]], seeds: Sequence[int]
) -> None:
    """Judge what topics are: whether generic ones agree better with what sounds, and whether audio follows topics."""
    chosen = agreed[agreed["classes"] == KIND].set_index("topics")["AMI"]
    finetuned = [chosen[f"finetuned, seed {seed}"] for seed in seeds]
    ledger.judge("generic-topics", difference(by_seed([chosen["generic"] - each for each in finetuned])))
    found = []
    for seed in seeds:
        topics = labels[f"finetuned, seed {seed}"]
        with_topics, without = (_followed(ground, name, seed, topics) for name in ("4", "3, again"))
        found.append(with_topics - without)
    ledger.judge("audio-follows-topics", difference(by_seed(found)))


def _followed(ground: Grounds, system: str, seed: int, topics: NDArray[np.int64]) -> float:
    stage = SYSTEMS[system]
    model = ground.plan(stage, MAIN, seed).train(progress=False).model
    clips = ground.view(SYSTEMS["1, finetuned"].named(MAIN)).data.train
    return followed(embed_audio(model, clips)[topics != OUTLIER], topics[topics != OUTLIER])

"""Whether the right one comes first: the part of retrieval that many runs can afford to keep."""

from __future__ import annotations

from pullpush.metrics._retrieval import by_clip, scores_of
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language


def recall_at_1_by_clip(embedded: Embeddings) -> Values:
    """R@1 of both directions on the test clips with all their captions, and the mean of both: `(N,)`, or `(N, K)`.

    >>> from types import SimpleNamespace
    >>> import torch
    >>> asked = SimpleNamespace(languages=("eng",), audio=torch.eye(2), texts=lambda language: torch.eye(2)[:, None])
    >>> recall_at_1_by_clip(asked)["R@1"].tolist()
    [1.0, 1.0]
    """
    columns = [by_clip(embedded.audio, embedded.texts(one), ks=(1,), map_at=()) for one in embedded.languages]
    return by_language([column | {"R@1": (column["T2A R@1"] + column["A2T R@1"]) / 2} for column in columns])


CARD = MetricCard(
    name="recall-at-1",
    make=recall_at_1_by_clip,
    title="Recall at one",
    about="How often the right clip, or the right caption, comes first.",
    source="SupCLAP §4.1.1",
    needs=("audio", "texts"),
    scores=(*scores_of((1,), ()), Score("R@1", better="higher")),
)

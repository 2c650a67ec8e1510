"""How close clips lie to their captions, and to the others (SupCLAP Figure 4)."""

from __future__ import annotations

import torch

from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values


def closeness_by_clip(embedded: Embeddings) -> Values:
    """Cosines of the test clips with their first captions ("positive cosine", SupCLAP Figure 4), and beside them the
    mean and the spread of their cosines with all other clips ("negative cosine", "spread of negatives").
    """
    audio = embedded.audio
    cosine = embedded.texts(embedded.languages[0])[:, 0] @ audio.T
    others = cosine[~torch.eye(len(cosine), dtype=torch.bool)].view(len(cosine), -1)
    values = {"positive cosine": cosine.diagonal(), "negative cosine": others.mean(1)}
    return {name: value.double().numpy() for name, value in values.items()} | {
        "spread of negatives": others.std(1).double().numpy()
    }


CARD = MetricCard(
    name="closeness",
    make=closeness_by_clip,
    title="Closeness",
    about="Cosines of clips with their first captions, and with those of other clips.",
    source="SupCLAP Figure 4",
    citation="supclap",
    needs=("audio", "texts"),
    scores=(
        Score("positive cosine", better="higher"),
        Score("negative cosine", better="lower"),
        Score("spread of negatives"),
    ),
)

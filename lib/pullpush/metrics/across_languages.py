"""Consistency of a model over languages, by clip: what experiments score (ATRI Eq. 14–16)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language
from pullpush.metrics.consistency import language_ranks, rank_variance
from pullpush.metrics.jackknife import gap_pseudo_values, pseudo_values


def consistency_by_clip(embedded: Embeddings) -> Values:
    """How far languages lie and rank apart on the test clips (ATRI Eq. 14–16); the first language is the reference.

    "Gap", "Dis" and "relative distance" `(N, K)` compare a clip's first captions. The reference's own column holds the
    mean of the others, so that a mean over all columns is one over the languages that are compared with it.
    "Gap within eng" and so on `(N,)`, by the reference's name, compare its second caption with its first: a yardstick.
    Gap and the relative distance (Dis over the mean distance of the reference captions of different clips) are no means
    over clips: theirs are pseudo-values. "MRV", "log rank variance", "mean rank" `(N,)` are means over a clip's
    captions, text to audio.
    """
    audio, languages = embedded.audio, embedded.languages
    spaces = torch.stack([embedded.texts(language) for language in languages], dim=2)  # (N, C, K, d)
    clips, captions, count = spaces.shape[:3]
    values: Values = {}
    if count > 1:
        columns = [_apart(spaces[:, 0, 0], spaces[:, 0, k]) for k in range(1, count)]
        mean = {name: np.mean([column[name] for column in columns], axis=0) for name in columns[0]}
        values |= by_language([mean, *columns])
    if captions > 1:
        within = _apart(spaces[:, 0, 0], spaces[:, 1, 0])
        values |= {f"{name} within {languages[0]}": value for name, value in within.items()}
    clip = torch.arange(clips).repeat_interleave(captions)
    ranks = language_ranks(audio, spaces.flatten(0, 1), direction="t2a", clip=clip)
    spread = {"MRV": rank_variance(ranks), "log rank variance": rank_variance(ranks.double().log())}
    spread["mean rank"] = ranks.double().mean(dim=1)
    return values | {name: value.view(clips, captions).mean(dim=1).numpy() for name, value in spread.items()}


def _apart(reference: Tensor, other: Tensor) -> Values:
    """Gap, Dis and relative distance `(N,)` of captions `(N, d)` from those of the reference."""
    apart = (reference - other).norm(dim=1).numpy()
    stranger = (reference - reference.roll(1, 0)).norm(dim=1).numpy()
    both = np.stack([apart, stranger], axis=1)
    relative = pseudo_values(lambda rows: rows[:, 0].mean() / rows[:, 1].mean(), both)
    return {"Gap": gap_pseudo_values((reference - other).numpy()), "Dis": apart, "relative distance": relative}


CARD = MetricCard(
    name="consistency",
    make=consistency_by_clip,
    title="Consistency across languages",
    about="How far the texts of one clip lie, and rank, apart in several languages.",
    source="ATRI Eq. 14–16",
    citation="atri",
    needs=("audio", "texts"),
    scores=(
        Score("Gap", better="lower"),
        Score("Dis", better="lower"),
        Score("relative distance", better="lower"),
        Score("MRV", unit="ranks²", better="lower"),
        Score("log rank variance", better="lower"),
        Score("mean rank", unit="ranks", better="lower"),
    ),
)

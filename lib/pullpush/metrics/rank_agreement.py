"""Whether a clip ranks alike in all languages: the part of consistency that many runs can afford to keep."""

from __future__ import annotations

import torch

from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values
from pullpush.metrics.consistency import language_ranks, rank_variance


def rank_agreement_by_clip(embedded: Embeddings) -> Values:
    """Variance over languages of the log rank of each test clip, text to audio, a mean over its captions: `(N,)`.

    The same number as "consistency" gives (ATRI Eq. 16 of log ranks, so that a place at the top counts more than one at
    the bottom), without what that one says of each language.

    >>> from types import SimpleNamespace
    >>> texts = {"eng": torch.eye(2), "fra": torch.eye(2).flip(0)}  # right in English, wrong in French
    >>> asked = SimpleNamespace(languages=tuple(texts), audio=torch.eye(2), texts=lambda one: texts[one][:, None])
    >>> rank_agreement_by_clip(asked)["log rank variance"].round(2).tolist()
    [0.12, 0.12]
    """
    spaces = torch.stack([embedded.texts(language) for language in embedded.languages], dim=2)  # (N, C, K, d)
    clips, captions = spaces.shape[:2]
    clip = torch.arange(clips).repeat_interleave(captions)
    ranks = language_ranks(embedded.audio, spaces.flatten(0, 1), direction="t2a", clip=clip)
    spread = rank_variance(ranks.double().log()).view(clips, captions)
    return {"log rank variance": spread.mean(dim=1).numpy()}


CARD = MetricCard(
    name="rank-agreement",
    make=rank_agreement_by_clip,
    title="Agreement of ranks across languages",
    about="How far a clip's texts in several languages rank apart.",
    source="ATRI Eq. 16",
    citation="atri",
    needs=("audio", "texts"),
    scores=(Score("log rank variance", better="lower"),),
)

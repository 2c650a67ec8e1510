"""Retrieval judged by degrees: nDCG, where it is known how well any caption fits any clip."""

from __future__ import annotations

from torch import Tensor

from pullpush.checks import check_embeddings, check_tensors
from pullpush.metrics._retrieval import retrieval_per_query
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language

K = 10


def graded_by_clip(audio: Tensor, text: Tensor, relevance: Tensor) -> dict[str, Tensor]:
    """nDCG@10 of both directions for each of N clips with C captions, whose captions fit alike.

    The gain of an item is its relevance to the query (Järvelin & Kekäläinen 2002, with relevance as it is):
    nDCG = Σ relᵢ / log₂(i + 1) over the first ten, over the same sum in the best order.

    >>> import torch
    >>> fits = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    >>> graded_by_clip(torch.eye(2), torch.eye(2)[:, None], fits)["T2A nDCG@10"].tolist()
    [1.0, 1.0]

    Args:
        audio: `(N, d)` L2-normalised clip embeddings.
        text: `(N, C, d)` L2-normalised caption embeddings.
        relevance: `(N, N)` in [0, 1], of the captions of each clip (rows) to each clip (columns).

    Returns:
        "T2A nDCG@10", "A2T nDCG@10" → `(N,)` float64 fractions; T2A is the mean over the clip's captions.

    Raises:
        ValueError: shapes that do not match, or values that are not finite.
        TypeError: what is no floating-point tensor.
    """
    check_embeddings(audio=audio, text=text)
    check_tensors(relevance=relevance)
    check_graded(audio, text, relevance)
    clips, captions, _ = text.shape
    similarity = text.flatten(0, 1) @ audio.T
    fits = relevance.repeat_interleave(captions, dim=0)
    return {
        f"{side} nDCG@{K}": retrieval_per_query(rows, truth, (), (K,))[f"nDCG@{K}"].view(clips, -1).mean(dim=1)
        for side, rows, truth in (("T2A", similarity, fits), ("A2T", similarity.T, fits.T.contiguous()))
    }


def check_graded(audio: Tensor, text: Tensor, relevance: Tensor) -> None:
    """Require shapes that fit one another."""
    clips = len(audio)
    if audio.ndim != 2 or text.ndim != 3 or len(text) != clips or relevance.shape != (clips, clips):
        raise ValueError(
            "need audio (N, d), text (N, C, d) and relevance (N, N), got "
            f"{tuple(audio.shape)}, {tuple(text.shape)} and {tuple(relevance.shape)}"
        )


def graded(embedded: Embeddings) -> Values:
    """nDCG@10 of both directions on the test clips, by their graded relevance."""
    texts = (embedded.texts(language) for language in embedded.languages)
    return by_language([graded_by_clip(embedded.audio, text, embedded.relevance) for text in texts])


CARD = MetricCard(
    name="graded",
    make=graded,
    title="Graded retrieval",
    about="nDCG@10 of both directions: a clip that fits a caption in part counts in part.",
    source="Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques",
    needs=("audio", "texts", "relevance"),
    scores=tuple(Score(f"{side} nDCG@{K}", better="higher") for side in ("T2A", "A2T")),
)

"""Retrieval where captions fit several clips: one right clip a caption, or every clip that it fits (the two annotations
of Soft-Label Distillation, Table 2), or by degrees (nDCG).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from pullpush.checks import check_embeddings, check_floats, check_relevance, check_tensors
from pullpush.metrics._retrieval import caption_relevance, retrieval_per_query
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language
from pullpush.precision import in_single

FITS = 0.75  # least relevance of a clip that a caption fits: of scenes, the same events in whatever order or relation
SINGLE = ("mAP@10", "R@1", "R@5", "R@10")  # the columns of the paper
MULTIPLE = ("mAP@10", "mAP@16")
DEGREES = "nDCG@16"
ALL = (*(f"{name} single" for name in SINGLE), *(f"{name} multiple" for name in MULTIPLE), DEGREES)
BRIEF = ("mAP@10 single", "R@1 single", "mAP@10 multiple", "mAP@16 multiple")
K = 10  # of nDCG alone


def annotated_by_clip(similarity: Tensor, relevance: Tensor, names: Sequence[str] = ALL) -> dict[str, Tensor]:
    """T2A under both annotations for each of N clips with C captions; see `annotated`.

    Under *single* annotation a caption's own clip alone is right, as Clotho comes. Under *multiple* every clip is whose
    relevance is `FITS` at least, and mAP@k is divided by all of them, as DCASE 2025 does. The two are two truths over
    the same queries, and their scores are not comparable. Where relevance is known by degrees, nDCG@16 takes it as it
    is.

    Args:
        similarity: `(N·C, N)`, captions in rows, clip by clip.
        relevance: `(N, N)` in [0, 1], of the captions of each clip (rows) to each clip; 1 for its own.
        names: of the scores that are wanted.

    Returns:
        "mAP@10 single" … "nDCG@16" → `(N,)` float64 fractions, the mean over the clip's captions.

    >>> order = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.9, 0.1], [0.1, 0.2, 0.9]])
    >>> truth = torch.tensor([[1.0, 0.0, 0.75], [0.0, 1.0, 0.0], [0.75, 0.0, 1.0]])
    >>> {name: value.tolist() for name, value in annotated_by_clip(order, truth).items() if "mAP@16" in name}
    {'mAP@16 multiple': [0.8333333333333333, 1.0, 0.8333333333333333]}
    """
    check_floats(similarity=similarity)
    check_relevance(relevance)
    clips = len(relevance)
    if relevance.shape != (clips, clips) or similarity.ndim != 2 or similarity.shape[1] != clips or not clips:
        raise ValueError(
            f"need similarity (N·C, N) and relevance (N, N), got {tuple(similarity.shape)} and {tuple(relevance.shape)}"
        )
    captions, rest = divmod(len(similarity), clips)
    if rest:
        raise ValueError(f"{len(similarity)} captions are no multiple of {clips} clips")
    own = caption_relevance(clips, captions).to(similarity.device)
    degrees = torch.maximum(relevance.float().repeat_interleave(captions, dim=0), own.float())
    right = degrees >= FITS
    single = retrieval_per_query(similarity, own)
    multiple = retrieval_per_query(similarity, right, divisor="relevant")
    values = {f"{name} single": single[name] for name in SINGLE}
    values |= {f"{name} multiple": multiple[name] for name in MULTIPLE}
    values |= retrieval_per_query(similarity, degrees, (), (16,)) if DEGREES in names else {}
    return {name: values[name].view(clips, -1).mean(dim=1) for name in names}


def annotated(names: Sequence[str], embedded: Embeddings) -> Values:
    """These of `annotated_by_clip` of the test clips with all their captions and their relevance."""
    texts = (embedded.texts(language) for language in embedded.languages)
    similarities = (text.flatten(0, 1) @ embedded.audio.T for text in texts)
    return by_language([annotated_by_clip(each, embedded.relevance, names) for each in similarities])


@in_single
def graded_by_clip(audio: Tensor, text: Tensor, relevance: Tensor) -> dict[str, Tensor]:
    """nDCG@10 of both directions for each of N clips `(N, d)` with C captions `(N, C, d)`, whose captions fit alike.

    The gain of an item is its relevance to the query (Järvelin & Kekäläinen 2002, with relevance as it is), `(N, N)` in
    [0, 1] of the captions of each clip (rows) to each clip: nDCG = Σ relᵢ / log₂(i + 1) over the first ten, over the
    same sum in the best order. "T2A nDCG@10", "A2T nDCG@10" → `(N,)` float64 fractions; T2A is the mean over the clip's
    captions.
    """
    check_embeddings(audio=audio, text=text)
    check_tensors(relevance=relevance)
    clips = len(audio)
    if audio.ndim != 2 or text.ndim != 3 or len(text) != clips or relevance.shape != (clips, clips):
        raise ValueError(
            "need audio (N, d), text (N, C, d) and relevance (N, N), got "
            f"{tuple(audio.shape)}, {tuple(text.shape)} and {tuple(relevance.shape)}"
        )
    similarity = text.flatten(0, 1) @ audio.T
    fits = relevance.repeat_interleave(text.shape[1], dim=0)
    return {
        f"{side} nDCG@{K}": retrieval_per_query(rows, truth, (), (K,))[f"nDCG@{K}"].view(clips, -1).mean(dim=1)
        for side, rows, truth in (("T2A", similarity, fits), ("A2T", similarity.T, fits.T.contiguous()))
    }


def graded(embedded: Embeddings) -> Values:
    """nDCG@10 of both directions on the test clips, by their graded relevance."""
    texts = (embedded.texts(language) for language in embedded.languages)
    return by_language([graded_by_clip(embedded.audio, text, embedded.relevance) for text in texts])


ANNOTATIONS = MetricCard(
    name="annotations",
    make=partial(annotated, ALL),
    title="Single and multiple annotation",
    about="T2A where a caption's own clip alone is right, and where every clip is that it fits.",
    source="DCASE 2025 task 6; Soft-Label Distillation, Table 2",
    citation="distill_cluster",
    needs=("audio", "texts", "relevance"),
    scores=tuple(Score(name, better="higher") for name in ALL),
)
CARDS = (
    ANNOTATIONS,
    replace(
        ANNOTATIONS,
        name="annotations-in-brief",
        make=partial(annotated, BRIEF),
        title="Single and multiple annotation, in brief",
        about="The same without recall at 5 and 10 and degrees, for hundreds of runs.",
        scores=tuple(Score(name, better="higher") for name in BRIEF),
    ),
    MetricCard(
        name="graded",
        make=graded,
        title="Graded retrieval",
        about="nDCG@10 of both directions: a clip that fits a caption in part counts in part.",
        source="Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques",
        needs=("audio", "texts", "relevance"),
        scores=tuple(Score(f"{side} nDCG@{K}", better="higher") for side in ("T2A", "A2T")),
    ),
)

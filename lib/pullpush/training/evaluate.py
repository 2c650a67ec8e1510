"""What a model knows: embeddings, retrieval in both directions, zero-shot classification, with intervals and chance."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.batches import Clips, present_captions
from pullpush.data.recordings.corpora import Queries
from pullpush.encoders.interface import Model
from pullpush.errors import PullPushError, UnknownNameError
from pullpush.metrics import by_caption, by_clip, difference, language_ranks, retrieval_per_query, zero_shot_predictions
from pullpush.metrics._retrieval import scores_by_chance


def embed(
    model: Model, split: Clips, *, language: str = "eng", caption: Any = 0, batch_size: int = 64
) -> tuple[Tensor, Tensor]:
    """Embeddings of all clips of a split and of their captions, float32 on the CPU.

    Args:
        model: evaluated in eval mode and left in the mode it was in.
        split: the clips.
        language: of the captions.
        caption: the number of the caption of each clip, or "all".
        batch_size: clips encoded at once.

    Returns:
        audio `(N, d)`; text `(N, d)`, or `(N, C, d)` for `caption="all"`.

    Raises:
        ValueError: for "all", if clips differ in their number of captions; clips without such a caption.
    """
    captions = present_captions(split, language)
    if lacking := len(captions) - len(_captioned(captions)):
        raise ValueError(f"{lacking} of {len(captions)} clips have no caption in {language!r}: evaluate the others")
    if caption != "all" and (least := min(map(len, captions), default=0)) <= caption:
        raise ValueError(f"caption {caption} of each clip was asked for, and one has {least}")
    chosen = captions if caption == "all" else [[texts[caption]] for texts in captions]
    text = embed_captions(model, chosen, language=language, batch_size=batch_size)
    return embed_audio(model, split, batch_size=batch_size), text if caption == "all" else text[:, 0]


def embed_audio(model: Model, split: Clips, *, batch_size: int = 64) -> Tensor:
    """Embeddings of all clips, `(N, d)` float32 on the CPU."""
    parts = []
    with _evaluating(model):
        for rows in _blocks(len(split), batch_size):
            clips = split.audio(list(rows), sample_rate=model.sample_rate)  # looked at before they go to a GPU
            parts.append(model.encode_audio(*clips).float().cpu())
    return torch.cat(parts)


def embed_texts(model: Model, texts: Sequence[str], *, language: str = "eng", batch_size: int = 64) -> Tensor:
    """Embeddings of texts of one language, `(M, d)` float32 on the CPU.

    >>> from pullpush.encoders import create
    >>> embed_texts(create("cnn", "hashed", dim=8), ["a frog", "a bell"]).shape
    torch.Size([2, 8])
    """
    parts = []
    with _evaluating(model):
        for rows in _blocks(len(texts), batch_size):
            parts.append(model.encode_text([texts[row] for row in rows], [language] * len(rows)).float().cpu())
    return torch.cat(parts)


def embed_captions(
    model: Model, captions: Sequence[Sequence[str]], *, language: str = "eng", batch_size: int = 64
) -> Tensor:
    """Embeddings of C captions of each of N clips, `(N, C, d)` float32 on the CPU.

    >>> from pullpush.encoders import create
    >>> embed_captions(create("cnn", "hashed", dim=8), [["a frog", "frogs"], ["a bell", "bells"]]).shape
    torch.Size([2, 2, 8])

    Raises:
        ValueError: the clips differ in their number of captions.
    """
    counts = {len(texts) for texts in captions}
    if len(counts) > 1:
        raise ValueError(f"all clips need one number of captions to use all, got {sorted(counts)}: choose one caption")
    flat = embed_texts(model, [text for texts in captions for text in texts], language=language, batch_size=batch_size)
    return flat.view(len(captions), -1, flat.shape[1])


def embed_ragged(model: Model, captions: Sequence[Sequence[str]], *, language: str = "eng") -> tuple[Tensor, Tensor]:
    """Embeddings of captions, however many a clip has, `(M, d)` float32, and `(M,)` int64, which clip each is of."""
    clip = torch.tensor([number for number, texts in enumerate(captions) for _ in texts])
    return embed_texts(model, [text for texts in captions for text in texts], language=language), clip


def retrieval_table(model: Model, split: Clips, languages: Sequence[str] = ("eng",)) -> pd.DataFrame:
    """Retrieval in both directions with all captions of each clip, however many, one block of rows a language.

    Clips without a caption in a language are neither queries nor items in it; a warning says how many they are, and
    which languages have none.

    Columns: language and those of `retrieval_rows`.

    Raises:
        ValueError: no two clips have a caption in any of the languages.
    """
    audio = embed_audio(model, split)
    tables, absent = [], []
    for language in languages:
        captions: list[list[str]] = []
        with suppress(UnknownNameError):
            captions = present_captions(split, language)
        rows = _captioned(captions)
        if len(rows) < 2:
            absent.append(repr(language))
            continue
        if missing := len(captions) - len(rows):
            warnings.warn(
                f"{missing} of {len(captions)} clips without a caption in {language!r} left out", stacklevel=2
            )
        texts, clip = embed_ragged(model, [captions[row] for row in rows], language=language)
        table = retrieval_rows(audio[rows], texts, clip)
        table.insert(0, "language", language)
        tables.append(table)
    if absent:
        message = f"no two clips have a caption in {', '.join(absent)}"
        if not tables:
            raise ValueError(message)
        warnings.warn(f"{message}, which is left out", stacklevel=2)
    return pd.concat(tables, ignore_index=True)


def retrieval_rows(audio: Tensor, text: Tensor, clip: Tensor | None = None) -> pd.DataFrame:
    """Retrieval metrics of embeddings in the protocol of `metrics.by_clip`, with intervals over clips.

    Args:
        audio: `(N, d)` L2-normalised, N ≥ 2.
        text: `(N, C, d)`, or `(N, d)` for C = 1; `(M, d)` where clips differ in their number of captions.
        clip: then, which clip each caption is of, `(M,)` int64.

    Returns:
        Columns direction ("T2A", "A2T"), metric, value, low, high (95 % over clips, of this one model; within 0 … 1),
        chance (the expectation for a random order); fractions.

    >>> retrieval_rows(torch.eye(4), torch.eye(4)).loc[0, ["metric", "value", "chance"]].to_dict()
    {'metric': 'R@1', 'value': 1.0, 'chance': 0.25}
    """
    captions = [text.shape[1] if text.ndim == 3 else 1] * len(text) if clip is None else clip.bincount().tolist()
    values = by_clip(audio, text) if clip is None else by_caption(audio, text, clip)
    chance = scores_by_chance(captions)
    rows = [(*name.split(" "), *_interval(found), chance[name]) for name, found in values.items()]
    return pd.DataFrame(rows, columns=["direction", "metric", "value", "low", "high", "chance"])


def query_table(model: Model, split: Clips, queries: Queries) -> pd.DataFrame:
    """Text-to-audio retrieval for queries of their own, of which each may have several right clips.

    mAP@k is divided by all right clips, as DCASE 2025 does, which ranks systems by mAP@16. There are two at least.

    Returns:
        Columns metric, value, low, high (95 % over queries, of this one model; within 0 … 1).
    """
    similarity = embed_texts(model, queries.texts) @ embed_audio(model, split).T
    values = retrieval_per_query(similarity, queries.relevance, divisor="relevant")
    rows = [(name, *_interval(found)) for name, found in values.items()]
    return pd.DataFrame(rows, columns=["metric", "value", "low", "high"])


def recall_at_1(model: Model, split: Clips, *, language: str = "eng") -> dict[str, float]:
    """R@1 of both directions and their mean ("R@1") with the first caption of each clip: what training selects by.

    Clips without a caption in this language are no queries.

    Raises:
        ValueError: no clip has a caption in this language.
    """
    rows, texts = first_captions(split, language)
    return recall_of(embed_audio(model, split), embed_texts(model, texts, language=language), rows)


def first_captions(split: Clips, language: str) -> tuple[list[int], list[str]]:
    """The clips that have captions in a language, and the first of each; ValueError where none has."""
    captions = present_captions(split, language)
    rows = _captioned(captions)
    if not rows:
        raise ValueError(f"no clip to choose the best epoch by has a caption in {language!r}")
    return rows, [captions[row][0] for row in rows]


def recall_of(audio: Tensor, text: Tensor, rows: Sequence[int]) -> dict[str, float]:
    """`recall_at_1` of embeddings: of all clips, `(N, d)`, and of one text of each of some, `(M, d)`."""
    values, clip = {}, torch.tensor(rows)
    for name, direction in (("T2A R@1", "t2a"), ("A2T R@1", "a2t")):  # by comparison: sorting would be half of the work
        values[name] = (
            (language_ranks(audio, text[:, None], direction=direction, clip=clip) == 1).double().mean().item()
        )
    return {**values, "R@1": sum(values.values()) / 2}


def zero_shot(model: Model, split: Clips, prompts: Sequence[str], *, language: str = "eng") -> pd.DataFrame:
    """Zero-shot classification of clips with one event each by the nearest prompt.

    Args:
        model: of clips and texts.
        split: clips with `labels` `(N,)` int64, of two classes at least.
        prompts: one a class, in the order of the labels, such as "This is a sound of a frog."
        language: of the prompts.

    Returns:
        Rows "accuracy" and "macro accuracy"; columns metric, value, low, high (95 %, within 0 … 1, over classes; but
        accuracy is over clips where classes are of unequal sizes), chance.

    Raises:
        PullPushError: there is one class.
        ValueError: fewer prompts than classes.
    """
    if len(split.labels.unique()) < 2:
        raise PullPushError("these data have sounds of one class: zero-shot classification asks for two or more")
    audio, text = embed_audio(model, split), embed_texts(model, prompts, language=language)
    labels = split.labels
    if int(labels.max()) >= len(prompts):
        raise ValueError(f"{len(prompts)} prompts for labels up to {int(labels.max())}: give one prompt a class")
    correct = (zero_shot_predictions(audio, text) == labels).double()
    counts = labels.bincount()
    per_class = torch.stack([correct[labels == label].mean() for label in labels.unique()])
    equal = counts[counts > 0].unique().numel() == 1  # then both means are one
    rows = [
        ("accuracy", *_interval(per_class if equal else correct), 1 / len(prompts)),
        ("macro accuracy", *_interval(per_class), 1 / len(prompts)),
    ]
    return pd.DataFrame(rows, columns=["metric", "value", "low", "high", "chance"])


def _interval(values: Tensor) -> tuple[float, float, float]:
    """Mean of fractions `(N,)` with its 95 % interval over them, within 0 … 1."""
    sure = difference(values.numpy()[None])
    return sure.value, max(sure.low, 0.0), min(sure.high, 1.0)


def _captioned(captions: Sequence[Sequence[str]]) -> list[int]:
    """The clips that have captions."""
    return [row for row, texts in enumerate(captions) if texts]


def _blocks(count: int, size: int) -> Iterator[range]:
    return (range(start, min(start + size, count)) for start in range(0, count, size))


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    """Eval mode without gradients; restores the mode of every part, of which some may stay in eval mode for good."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training

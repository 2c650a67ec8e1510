"""What a trained model scores, clip by clip: one array a metric, which every difference in the book is taken from.

An evaluation is a function of a model and its data; `EVALUATIONS` finds it by name. To add one, write the function and
a row. Values are per clip `(N,)`, or `(N, K)` where there are K languages, so that seeds and clips can be resampled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.data.grammar import prompts
from pullpush.metrics import (
    by_clip,
    gap_pseudo_values,
    language_ranks,
    pseudo_values,
    rank_variance,
    zero_shot_predictions,
)
from pullpush.source import Registry
from pullpush.training.evaluate import KS, embed_audio, embed_texts

Values = dict[str, np.ndarray]
METRICS = tuple(f"{side} {metric}" for side in ("T2A", "A2T") for metric in (*(f"R@{k}" for k in KS), "mAP@10"))
BATCH = 512


def retrieval(model: nn.Module, data: Any, languages: Sequence[str]) -> Values:
    """METRICS on the test clips with all their captions, and "R@1", the mean of both directions."""
    audio = embed_audio(model, data.test, batch_size=BATCH)
    return _stacked([_retrieval(audio, texts(model, data.test, language)) for language in languages])


def consistency(model: nn.Module, data: Any, languages: Sequence[str]) -> Values:
    """How far languages lie and rank apart on the test clips (ATRI Eq. 14–16); the first language is the reference.

    "Gap", "Dis" and "relative distance" `(N, K)` compare a clip's first captions. The reference's own column holds the
    mean of the others, so that a mean over all columns is one over the languages that are compared with it.
    "Gap within eng" and so on `(N,)`, by the reference's name, compare its second caption with its first: a yardstick.
    Gap and the relative distance (Dis over the mean distance of the reference captions of different clips) are no means
    over clips: theirs are pseudo-values. "MRV", "log rank variance", "mean rank" `(N,)` are means over a clip's
    captions, text to audio.
    """
    audio = embed_audio(model, data.test, batch_size=BATCH)
    spaces = torch.stack([texts(model, data.test, language) for language in languages], dim=2)  # (N, C, K, d)
    clips, captions, count = spaces.shape[:3]
    values: Values = {}
    if count > 1:
        columns = [_apart(spaces[:, 0, 0], spaces[:, 0, k]) for k in range(1, count)]
        mean = {name: np.mean([column[name] for column in columns], axis=0) for name in columns[0]}
        values |= _stacked([mean, *columns])
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


def zero_shot(model: nn.Module, data: Any, languages: Sequence[str]) -> Values:
    """Zero-shot "accuracy" by class, `(C,)` or `(C, K)`: single events, the prompt of SupCLAP in each language."""
    audio, labels = embed_audio(model, data.singles, batch_size=BATCH), data.singles.labels
    columns = []
    for language in languages:
        classes = embed_texts(model, prompts(data.bank.events, language), language=language)
        correct = (zero_shot_predictions(audio, classes) == labels).double()
        columns.append({"accuracy": torch.stack([correct[labels == c].mean() for c in labels.unique()])})
    return _stacked(columns)


def closeness(model: nn.Module, data: Any, languages: Sequence[str]) -> Values:
    """Cosines of the test clips with their first captions ("positive cosine", SupCLAP Figure 4), and beside them the
    mean and the spread of their cosines with all other clips ("negative cosine", "spread of negatives").
    """
    audio = embed_audio(model, data.test, batch_size=BATCH)
    cosine = texts(model, data.test, languages[0])[:, 0] @ audio.T
    others = cosine[~torch.eye(len(cosine), dtype=torch.bool)].view(len(cosine), -1)
    values = {"positive cosine": cosine.diagonal(), "negative cosine": others.mean(1)}
    return {name: value.double().numpy() for name, value in values.items()} | {
        "spread of negatives": others.std(1).double().numpy()
    }


EVALUATIONS: Registry[str, Callable[[nn.Module, Any, Sequence[str]], Values]] = Registry(
    {"retrieval": retrieval, "consistency": consistency, "zero-shot": zero_shot, "closeness": closeness}
)


def texts(model: nn.Module, split: Any, language: str) -> Tensor:
    """Embeddings of all C captions of each clip in one language, `(N, C, d)`."""
    captions = split.captions(language)
    flat = embed_texts(model, [text for own in captions for text in own], language=language, batch_size=BATCH)
    return flat.view(len(captions), -1, flat.shape[1])


def _retrieval(audio: Tensor, text: Tensor) -> dict[str, Tensor]:
    values = by_clip(audio, text, KS, (10,))
    return values | {"R@1": (values["T2A R@1"] + values["A2T R@1"]) / 2}


def _stacked(columns: Sequence[dict[str, Any]]) -> Values:
    """Of each language's values `(N,)`: `(N,)` if it is one language, else `(N, K)`."""
    names = columns[0]
    joined = {name: np.stack([np.asarray(column[name], float) for column in columns], axis=1) for name in names}
    return {name: values[:, 0] if len(columns) == 1 else values for name, values in joined.items()}

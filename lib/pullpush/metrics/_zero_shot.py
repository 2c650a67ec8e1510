"""Zero-shot classification: the class whose prompt embedding is nearest."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from pullpush.checks import check_embeddings, check_numbers_of, check_tensors
from pullpush.metrics._retrieval import recall_by_chance
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language


def zero_shot_predictions(audio: Tensor, prompts: Tensor) -> Tensor:
    """Class with the most similar prompt: audio `(N, d)`, prompts `(C, d)` or `(C, P, d)` → `(N,)` int64.

    Several prompts per class are averaged and normalised again, as in CLIP's prompt ensembling.

    >>> zero_shot_predictions(torch.tensor([[0.6, 0.8]]), torch.eye(2))
    tensor([1])

    Raises:
        ValueError: shapes that do not match, or values that are not finite.
        TypeError: what is no floating-point tensor.
    """
    check_embeddings(audio=audio, prompts=prompts)
    if prompts.ndim == 3:
        prompts = torch.nn.functional.normalize(prompts.mean(dim=1), dim=-1)
    if audio.ndim != 2 or prompts.ndim != 2 or audio.shape[1] != prompts.shape[1]:
        raise ValueError(
            f"audio (N, d) and prompts (C, d) must share d, got {tuple(audio.shape)} and {tuple(prompts.shape)}"
        )
    return (audio @ prompts.T).argmax(dim=1)


def zero_shot(audio: Tensor, prompts: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy over clips and its mean over classes (macro), fractions.

    Args:
        audio: `(N, d)` L2-normalised.
        prompts: `(C, d)` or `(C, P, d)` L2-normalised prompt embeddings ("This is a sound of {label}").
        labels: `(N,)` int64 class of each clip.

    >>> zero_shot(torch.eye(2), torch.eye(2), torch.tensor([0, 1]))
    {'accuracy': 1.0, 'macro accuracy': 1.0}

    Raises:
        ValueError: as `zero_shot_predictions`; no clips, or a label that no class has.
        TypeError: as there; labels that are no whole numbers.
    """
    check_labels(labels, audio, prompts)
    correct = (zero_shot_predictions(audio, prompts) == labels).double()
    per_class = [correct[labels == label].mean() for label in labels.unique()]
    return {"accuracy": correct.mean().item(), "macro accuracy": torch.stack(per_class).mean().item()}


def check_labels(labels: Tensor, audio: Tensor, prompts: Tensor) -> None:
    """Require one of the classes for each of one clip or more."""
    check_tensors(audio=audio, prompts=prompts)
    if audio.ndim != 2 or prompts.ndim not in (2, 3):
        raise ValueError(
            f"need audio (N, d) and prompts (C, d) or (C, P, d), got {tuple(audio.shape)} and {tuple(prompts.shape)}"
        )
    if len(audio) == 0 or len(prompts) == 0:
        raise ValueError(f"takes at least one clip and one class, got {len(audio)} and {len(prompts)}")
    check_numbers_of("labels", labels, len(audio), len(prompts))


def accuracy_by_class(embedded: Embeddings) -> Values:
    """Zero-shot "accuracy" of each class, `(C,)` or `(C, K)`: single events, the prompt of SupCLAP in each language."""
    labels, columns = embedded.labels, []
    for language in embedded.languages:
        correct = (zero_shot_predictions(embedded.singles, embedded.prompts(language)) == labels).double()
        columns.append({"accuracy": torch.stack([correct[labels == c].mean() for c in labels.unique()])})
    return by_language(columns)


CARD = MetricCard(
    name="zero-shot",
    make=accuracy_by_class,
    title="Zero-shot classification",
    about="Accuracy of the nearest prompt on clips with one event each, by class.",
    source="SupCLAP §4.1.1, GLAP §3",
    needs=("singles", "labels", "prompts"),
    scores=(Score("accuracy", better="higher", chance=partial(recall_by_chance, 1)),),
)

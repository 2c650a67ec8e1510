"""Zero-shot classification: the class whose prompt embedding is nearest."""

from __future__ import annotations

import torch
from torch import Tensor


def zero_shot_predictions(audio: Tensor, prompts: Tensor) -> Tensor:
    """Class with the most similar prompt: audio `(N, d)`, prompts `(C, d)` or `(C, P, d)` → `(N,)` int64.

    Several prompts per class are averaged and normalised again, as in CLIP's prompt ensembling.
    """
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
    """
    correct = (zero_shot_predictions(audio, prompts) == labels).double()
    per_class = [correct[labels == label].mean() for label in labels.unique()]
    return {"accuracy": correct.mean().item(), "macro accuracy": torch.stack(per_class).mean().item()}

"""What lesson 4 computes beside its few lines of torch: terms, texts under dropout, distances within a space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.lab.experiments import System
from pullpush.metrics.geometry import alignment, uniformity
from pullpush.metrics.inference import Array
from pullpush.training.evaluate import embed
from pullpush.training.loop import Result
from pullpush.training.recipes import recipe, title
from pullpush.training.runs import untrained as untrained

Runs = Mapping[tuple[str, int], Result]  # by (system, seed)
PAIRS, TEXTS = "a caption and its clip", "two captions"
T = 2.0  # of uniformity
# Of what trains as a page runs: a text encoder from scratch with fewer layers, in the profile's epochs.
LIGHT: Mapping[str, Any] = {"lr": 2e-3, "encoder_options": {"text_layers": 1}}


def term_weights(systems: Mapping[str, System]) -> pd.DataFrame:
    """Table 1 with its weights: a row a system, a column a term, NaN where a system has none.

    >>> term_weights({"CLAPs": ("infonce-learnable+simcse-0.1", {})}).to_dict("records")
    [{'system': 'CLAPs', 'InfoNCE': 1.0, 'SimCSE': 0.1}]
    """
    rows = [
        {"system": system, **{title(term.name): term.weight for term in recipe(name, **overrides).terms}}
        for system, (name, overrides) in systems.items()
    ]
    return pd.DataFrame(rows)


def dropout_views(model: nn.Module, texts: Sequence[str], *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two passes of the same texts through a text encoder as it is in training, `(N, d)` each.

    The model is left in its mode, and the global random state as it was.

    >>> from pullpush.encoders import create
    >>> first, second = dropout_views(create("cnn", "words", dim=8), ["a frog croaks"])
    >>> bool((first == second).all())
    False
    """
    training = model.training
    model.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.default_generator.manual_seed(seed)
            # pyrefly: ignore[not-callable]
            return model.encode_text(list(texts)), model.encode_text(list(texts))
    finally:
        model.train(training)


def view_distances(runs: Runs, system: str, texts: Sequence[str]) -> Array:
    """One minus the cosine of the two dropout views of each text, `(seeds, N)`, by all runs of a system."""
    views = [dropout_views(run.model, texts, seed=seed) for (name, seed), run in runs.items() if name == system]
    return np.stack([1 - (first.double() * second.double()).sum(dim=1).numpy() for first, second in views])


def squared_distances(models: Mapping[str, nn.Module], clips: Clips) -> pd.DataFrame:
    """The squared distances that alignment and uniformity are about, in the space of each model.

    Returns:
        Columns model, between (PAIRS or TEXTS), squared (one a pair) and summary: of PAIRS their mean, which is the
        alignment; of TEXTS −U/2 with their uniformity U, the one distance that all would have in an equally uniform
        space.
    """
    tables = []
    for name, model in models.items():
        audio, text = embed(model, clips)
        squared = {
            PAIRS: ((audio - text).square().sum(dim=1), alignment(audio, text)),
            TEXTS: (torch.nn.functional.pdist(text).square(), -uniformity(text, t=T) / T),
        }
        tables += [
            pd.DataFrame({"model": name, "between": between, "squared": values.numpy(), "summary": float(summary)})
            for between, (values, summary) in squared.items()
        ]
    return pd.concat(tables, ignore_index=True)

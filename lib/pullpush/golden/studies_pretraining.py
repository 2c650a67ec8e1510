"""Probes of pretraining: patches of a spectrogram, and a few steps of every objective on a tiny corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pullpush.encoders.audio_transformer import PATCH
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.golden.studies_taught import clips
from pullpush.pretraining.corpus import Corpus, Part, Patched
from pullpush.pretraining.loop import Budget, initial, learn, make_optimiser, order, tensors_of
from pullpush.pretraining.masked_prediction import MaskedPrediction, cepstrum
from pullpush.training.checkpoints import Progress
from pullpush.training.features import Activated

BUDGET = Budget(steps=5, clips=3, period=8, width=8, layers=1, heads=2, half=False)
SIZES = (9, 2, 5, 12)  # patches of the clips
TEXTS = ("", "a frog", "rain", "a bell")
TAGS = ({"frog", "rain"}, {"speech"}, {"rain"}, {"frog"})


def patches() -> Values:
    """Patches of clips, one after the other, and their mean."""
    front = Patched()
    audio, lengths = clips().audio(slice(None))
    with torch.no_grad():
        values, sizes = front.lower(audio, lengths)
        mean = front.upper(values, sizes)
    return {"sizes": sizes, "first": values[0, :200:10], "every": seen(values), "mean": mean[:, ::32]}


def learning(name: str) -> Values:
    """The losses of a few steps of an objective, what is scored after each epoch, and where its weights end."""
    train, held_out = corpus(0), corpus(1)
    objective = initial(name, train, held_out, 1, BUDGET)
    values: dict[str, Any] = {}
    if isinstance(objective, MaskedPrediction):
        # Which unit a patch is of is scikit-learn's to find, and on other processors it finds others.
        objective.units = {id(each): [torch.arange(size) % 5 for size in SIZES] for each in (train, held_out)}
        values["cepstra"] = np.concatenate([seen(cepstrum(train.patches(row))) for row in range(len(train))])
    optimiser, state = make_optimiser(objective, BUDGET), Progress()
    for _ in learn(objective, optimiser, state, 1, BUDGET):
        pass
    values |= {key: [row[key] for row in state.history] for key in state.history[0]}
    values["steps"] = [row["loss"] for row in state.steps]
    values["rates"] = [BUDGET.rate(step) for step in range(BUDGET.steps)]
    values["orders"] = [rows.tolist() for epoch in (0, 1) for rows in order(7, 3, 1, epoch)]
    values["decays"] = [[group["weight_decay"], len(group["params"])] for group in optimiser.param_groups]
    weights = tensors_of(objective.eval())
    # Not the biases: what attention adds to its keys changes nothing, so that its gradient is rounding.
    values["weights"] = [float(weights[key].float().norm()) for key in sorted(weights) if weights[key].ndim > 1]
    return values


def corpus(seed: int) -> Corpus:
    """Clips as random patches that differ in their level, with tags and texts."""
    levels = torch.arange(1.0, 1 + len(SIZES)).repeat_interleave(torch.tensor(SIZES))[:, None]
    values = (levels * numbers(sum(SIZES), PATCH, seed=seed) / 4).half().flatten().numpy()
    stops = PATCH * np.cumsum(SIZES)
    heard = Activated(clips(), values, np.stack([stops - PATCH * np.array(SIZES), stops], axis=1))
    return Corpus((Part(heard, "sound", list(TAGS), list(TEXTS)),), ("frog", "rain", "speech"))

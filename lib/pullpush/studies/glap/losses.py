"""The losses that chapter 5 compares as recipes: softmax, sigmoid, and what of the sigmoid is learnt.

SigLIP's own form, s/τ + β, is what GLAP's published code trains; Eq. 2 as printed is (s + β)/τ, which can express the
same. Both start at logits near −10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullpush.lab.experiments import System

FIXED: Mapping[str, Any] = {"learn_bias": False}  # the temperature is learnt all the same
LOSSES: Mapping[str, System] = {
    "InfoNCE": ("infonce-learnable", {}),
    "SigLIP": ("siglip", {}),
    "Eq. 2": ("siglip", {"form": "glap"}),
}
BIASES: Mapping[str, System] = {
    "bias fixed": ("siglip", dict(FIXED)),
    "no bias": ("siglip", {"bias": 0.0, **FIXED}),
}
# Eq. 2 and SigLIP express the same and differ in how fast their numbers move: one of them at all sizes of the batch.
BY_BATCH = {**{label: LOSSES[label] for label in ("InfoNCE", "SigLIP")}, **BIASES}
START = -10.0  # SigLIP's bias before training

PARTS = 8  # GPUs of the paper

# What the published code does otherwise than the paper says, as overrides of the recipe; "plus" adds a term to it. Its
# temperature and bias have the rate of all weights, 1e-4, which is a tenth of ours: they are the second's control.
SLOW = {"scalar_lr": 0.1}
PUBLISHED_CODE: Mapping[str, Mapping[str, Any]] = {
    "loss on each device": {"loss_parts": PARTS},
    "slow temperature and bias": SLOW,
    "temperature as it is": {"raw_tau": True, **SLOW},
    "regularised embeddings": {"plus": "+sparsity"},
    "short warm-up": {"warmup": 0.005},  # 1,000 steps of 200,000
}
TOGETHER = "all of it"

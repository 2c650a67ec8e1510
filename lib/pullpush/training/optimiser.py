"""How weights move: the optimiser of a recipe, its learning rate over the steps, and the clipping of gradients."""

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer

from pullpush.errors import TrainingError
from pullpush.extras import MissingExtraError
from pullpush.progress import held_back
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe


def make_optimiser(objective: Objective, recipe: Recipe, *, on_gpu: bool = False) -> Optimizer:
    """Adam or AdamW over what is trainable; biases, norms and numbers of a loss do not decay.

    `factor` of a group is its share of the learning rate: a loss's numbers and networks have their own (see Recipe).
    Where clips are features Adam is most of a step, so that its fused kernel pays, as on a GPU; it rounds differently.

    Raises:
        MissingExtraError: Adam in eight bits without the package that brings it.
        TrainingError: nothing is trainable.
    """
    encoders, losses = objective.learning
    decay = recipe.weight_decay
    groups = [
        {"params": [p for p in encoders if p.ndim >= 2], "weight_decay": decay, "factor": 1.0},
        {"params": [p for p in encoders if p.ndim < 2], "weight_decay": 0.0, "factor": 1.0},
        {"params": [p for p in losses if p.ndim >= 2], "weight_decay": decay, "factor": recipe.network_lr},
        {"params": [p for p in losses if p.ndim == 1], "weight_decay": 0.0, "factor": recipe.network_lr},
        {"params": [p for p in losses if p.ndim == 0], "weight_decay": 0.0, "factor": recipe.scalar_lr},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise TrainingError(
            "nothing learns: all weights of the model are frozen, and its loss has none; let a part of an encoder "
            "require gradients, or take a model with projections"
        )
    with held_back() as came:  # a first optimiser imports this for seconds: half of it would be an error ever after
        import_module("torch._dynamo")
    if came:
        raise KeyboardInterrupt
    if recipe.optimiser == "adam8bit":  # moments take a quarter of the memory, in blocks (Dettmers et al., 2022)
        if find_spec("bitsandbytes") is None:
            raise MissingExtraError(
                'optimiser="adam8bit" needs bitsandbytes: pip install \'pullpush[8bit]\', or take optimiser="adam"'
            )
        return import_module("bitsandbytes.optim").Adam8bit(groups, lr=recipe.lr)
    fused = on_gpu or recipe.audio == "features" or None
    return {"adam": Adam, "adamw": AdamW}[recipe.optimiser](groups, lr=recipe.lr, fused=fused)


def rate(step: int, total: int, recipe: Recipe) -> float:
    """Share of the peak learning rate at a step counted from 0: linear warm-up, then constant or a half cosine.

    >>> from pullpush.training import Recipe, Term
    >>> glap = Recipe("glap", (Term("siglip"),), warmup_steps=1000, floor=0.1)
    >>> [round(rate(step, 21_000, glap), 3) for step in (0, 999, 11_000, 20_999)]
    [0.001, 1.0, 0.55, 0.1]
    """
    warm = recipe.warmup_steps or round(recipe.warmup * total)
    if step < warm:
        return (step + 1) / warm
    if recipe.schedule == "constant":
        return 1.0
    share = 0.5 * (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1)))
    return recipe.floor + (1 - recipe.floor) * share


def clip_gradients(objective: Objective, recipe: Recipe) -> dict[str, Tensor]:
    """Shorten the gradients of the encoders and of the loss's own parameters, each on its own; returns their norms.

    Together, one number of the loss could starve a million weights: SVR's static radius begins with a derivative of
    about 20 where the encoders' norm is near 1. The loss is an average over the batch and its parameters are few, so
    that Adam, which does not mind scale, takes care of them; their clip is against outliers alone. `accelerate` would
    do the same, and look torch's version up on the disk at each step.

    Returns:
        gradient, of the encoders; loss_gradient, where the loss has parameters that learn; 0-d each.
    """
    encoders, losses = objective.learning
    norms = {"gradient": _clipped(encoders, recipe.clip)}
    return norms | {"loss_gradient": _clipped(losses, recipe.clip)} if losses else norms


def _clipped(parameters: Sequence[Tensor], longest: float) -> Tensor:
    """As `clip_grad_norm_`, which sorts gradients by type and device before each of its two passes."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if longest:
        torch._foreach_mul_(gradients, (longest / (norm + 1e-6)).clamp(max=1.0))
    return norm


def update(optimiser: Optimizer, healthy: Tensor) -> None:
    """A step where `healthy`, 0-d boolean, else none; a fused optimiser reads it on the device, as of a scaler."""
    inner: Any = getattr(optimiser, "optimizer", optimiser)  # within accelerate's
    if all(group.get("fused") for group in inner.param_groups):
        inner.found_inf = (~healthy).float()
    elif not healthy:
        return
    # Accelerate's step without a scaler looks for packages on disk, and then takes this one.
    (optimiser if getattr(optimiser, "scaler", None) else inner).step()

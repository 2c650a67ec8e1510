"""What a training step costs: systems take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.batches import Batch
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser
from pullpush.training.recipes import Recipe


def overhead(
    plans: Mapping[str, Recipe], model: torch.nn.Module, batch: Batch | Mapping[str, Batch], *, rounds: int = 7
) -> pd.DataFrame:
    """What a training step costs: plans take turns, so that a busy machine slows all of them alike.

    Args:
        batch: of all plans, or one for each.

    Returns:
        Columns system, seconds (median), time and memory, the ratios to the first plan. Memory is what a step holds
        for its backward pass plus weights, gradients and the two moments of Adam.
    """
    batches = batch if isinstance(batch, Mapping) else dict.fromkeys(plans, batch)
    made = {name: Objective(model, plan) for name, plan in plans.items()}
    steps = {name: _stepper(objective, plans[name], batches[name]) for name, objective in made.items()}
    held = {name: _held_bytes(objective, batches[name]) for name, objective in made.items()}
    for step in steps.values():
        step()
    table = pd.DataFrame([{name: step() for name, step in steps.items()} for _ in range(rounds)])
    first = next(iter(plans))
    return pd.DataFrame(
        {
            "system": list(plans),
            "seconds": table.median().to_numpy(),
            "time": table.div(table[first], axis=0).median().to_numpy(),
            "memory": [held[name] / held[first] for name in plans],
        }
    )


def _stepper(objective: Objective, plan: Recipe, batch: Batch) -> Callable[[], float]:
    optimiser = make_optimiser(objective, plan)

    def step() -> float:
        start = time.process_time()
        optimiser.zero_grad()
        objective(batch).loss.backward()
        optimiser.step()
        return time.process_time() - start

    return step


def _held_bytes(objective: Objective, batch: Batch) -> int:
    """Bytes of all different tensors kept for the backward pass, and four times the weights."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outcome = objective(batch)
        size = sum(kept.values())  # while the graph lives, so that no address is used twice
        del outcome
    return size + 4 * sum(p.numel() * p.element_size() for p in objective.parameters() if p.requires_grad)

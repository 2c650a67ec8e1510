"""What a training step costs: systems take turns, so that a busy machine slows all of them alike.

Seconds are of this thread alone, whatever else runs on the machine; of each system the median over the rounds is
compared with the first one's.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch.optim import Optimizer

from pullpush.data.batches import Batch
from pullpush.parallel import one_thread
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser
from pullpush.training.recipes import Recipe


class Step(NamedTuple):
    """All that one step takes."""

    objective: Objective
    optimiser: Optimizer
    batch: Batch

    def __call__(self) -> None:
        """Encode, compare, go back, move."""
        self.objective(self.batch).loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()


def overhead(
    plans: Mapping[str, Recipe], model: torch.nn.Module, batch: Batch | Mapping[str, Batch], *, rounds: int = 7
) -> pd.DataFrame:
    """What a training step of a model costs.

    Args:
        batch: of all plans, or one for each.

    Returns:
        Columns system, seconds and time, see `step_times`; memory, the ratio to the first plan of what a step holds for
        its backward pass plus weights, gradients and the two moments of Adam.
    """
    batches = batch if isinstance(batch, Mapping) else dict.fromkeys(plans, batch)
    made = {name: Objective(model, plan) for name, plan in plans.items()}
    held = [_held_bytes(objective, batches[name]) for name, objective in made.items()]
    steps = {name: Step(one, make_optimiser(one, plans[name]), batches[name]) for name, one in made.items()}
    times = step_times(steps, rounds=rounds).drop(columns=["low", "high"])
    return times.assign(memory=[each / held[0] for each in held])


def step_times(steps: Mapping[str, Step], *, rounds: int = 9) -> pd.DataFrame:
    """How long steps take, in turns, by one thread, after one of each that warms up.

    Returns:
        A row a system: system, seconds (median), time (ratio to the first system, median over the rounds), low, high
        (quartiles of that ratio).
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    with one_thread():
        for _ in range(rounds + 1):
            for name, step in steps.items():
                began = time.thread_time()
                step()
                seconds[name].append(time.thread_time() - began)
    times = pd.DataFrame(seconds).iloc[1:]
    ratios = times.div(times.iloc[:, 0], axis=0)
    table = {"system": list(steps), "seconds": times.median().to_numpy(), "time": ratios.median().to_numpy()}
    return pd.DataFrame(table).assign(low=ratios.quantile(0.25).to_numpy(), high=ratios.quantile(0.75).to_numpy())


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

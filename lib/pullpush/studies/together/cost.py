"""What a step of training costs with each combination of terms: seconds measured side by side, and what torch counts.

Seconds are of this processor alone, by one thread, and what else runs on the machine does not count: the steps of all
combinations take turns, and of each the median over the rounds is compared with the baseline's. FLOPs and kept bytes
are counted and are the same everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pandas as pd
import torch
from torch.optim import Optimizer

from pullpush.data.batches import Batch
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.parallel import one_thread
from pullpush.studies.counting import cost
from pullpush.studies.together.experiments import Tuned
from pullpush.studies.together.terms import label, system
from pullpush.training.frozen import on_features
from pullpush.training.objective import Objective, bring_columns
from pullpush.training.optimiser import make_optimiser
from pullpush.training.runs import ready

ROUNDS = 9
RATIOS = {"FLOPs ratio": "FLOPs", "memory ratio": "kept"}


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


def step_of(view: View, high: Collection[str], *, tuned: Tuned | None = None, seed: int = 0) -> Step:
    """The first step of a combination on a view's training clips; every combination has the same clips."""
    name, overrides = system(high, dim=view.session.settings.dim, tuned=tuned)
    recipe = common.sized(view.session, name, **common.merged(on_features(view.data), view.overrides, overrides))
    model, dataset = ready(view.data, recipe, seed=seed)
    bring_columns(dataset, recipe)
    batch = next(iter(dataset.batches(recipe.batch_size, seed=seed, epoch=0)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        objective = Objective(model.train(), recipe)
    return Step(objective, make_optimiser(objective, recipe), batch)


def step_costs(view: View, combinations: Iterable[Collection[str]], *, rounds: int = ROUNDS) -> pd.DataFrame:
    """What a step of each combination costs; ratios are to the first of them.

    Args:
        view: what is learnt from.
        combinations: each the factors that are high, the baseline first.
        rounds: steps of each, in turns, after one that warms up.

    Returns:
        Of `step_times`, and FLOPs, kept (bytes for the backward pass), both also as ratios: "FLOPs ratio", "memory
        ratio".
    """
    steps = steps_of(view, combinations)
    counted = [cost(step.objective, lambda step=step: step.objective(step.batch).loss) for step in steps.values()]
    table = step_times(steps, rounds=rounds)
    table = table.assign(FLOPs=[one.both for one in counted], kept=[one.kept for one in counted])
    ratios = {name: table[column] / table[column].iloc[0] for name, column in RATIOS.items()}
    return table.assign(**ratios)


def steps_of(view: View, combinations: Iterable[Collection[str]]) -> dict[str, Step]:
    """`step_of` each combination, by its label."""
    return {label(high): step_of(view, high) for high in combinations}


def step_times(steps: Mapping[str, Step], *, rounds: int = ROUNDS) -> pd.DataFrame:
    """How long steps take, in turns, by one thread.

    Returns:
        A row a system: system, seconds (median), time (ratio to the first system, median over the rounds), low, high
        (quartiles of that ratio).
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    with one_thread():
        for turn in range(rounds + 1):
            for name, step in steps.items():
                began = time.thread_time()
                step()
                if turn:
                    seconds[name].append(time.thread_time() - began)
    times = pd.DataFrame(seconds)
    ratios = times.div(times.iloc[:, 0], axis=0)
    table = {"system": list(steps), "seconds": times.median().to_numpy(), "time": ratios.median().to_numpy()}
    return pd.DataFrame(table).assign(low=ratios.quantile(0.25).to_numpy(), high=ratios.quantile(0.75).to_numpy())

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
from pullpush.studies.together.terms import label, system
from pullpush.training.frozen import on_features
from pullpush.training.objective import Objective, bring_columns
from pullpush.training.optimiser import make_optimiser
from pullpush.training.runs import ready


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


def steps_of(view: View, combinations: Iterable[Collection[str]], *, seed: int = 0) -> dict[str, Step]:
    """The first step of each combination on a view's training clips, by its label; all have the same clips."""
    found = {}
    for high in combinations:
        name, overrides = system(high, dim=view.session.settings.dim)
        recipe = common.sized(view.session, name, **common.merged(on_features(view.data), view.overrides, overrides))
        model, dataset = ready(view.data, recipe, seed=seed)
        bring_columns(dataset, recipe)
        batch = next(iter(dataset.batches(recipe.batch_size, seed=seed, epoch=0)))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            objective = Objective(model.train(), recipe)
        found[label(high)] = Step(objective, make_optimiser(objective, recipe), batch)
    return found


def step_costs(steps: Mapping[str, Step], *, rounds: int = 9) -> pd.DataFrame:
    """What a step of each combination costs; ratios are to the first of them.

    Returns:
        Of `step_times`, and FLOPs, kept (bytes for the backward pass), both also as ratios: "FLOPs ratio", "memory
        ratio".
    """
    counted = [cost(step.objective, lambda step=step: step.objective(step.batch).loss) for step in steps.values()]
    table = step_times(steps, rounds=rounds)
    table = table.assign(FLOPs=[one.both for one in counted], kept=[one.kept for one in counted])
    ratios = table[["FLOPs", "kept"]] / table[["FLOPs", "kept"]].iloc[0]
    return table.assign(**{"FLOPs ratio": ratios["FLOPs"], "memory ratio": ratios["kept"]})


def step_times(steps: Mapping[str, Step], *, rounds: int = 9) -> pd.DataFrame:
    """How long steps take, in turns, by one thread.

    rounds: steps of each, in turns, after one that warms up.

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

"""Runs that a probe watches while they train; they are not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pandas as pd

from pullpush.data.clips import World
from pullpush.parallel import one_thread, side_by_side
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import trunk_of
from pullpush.training.loop import train
from pullpush.training.recipes import Recipe
from pullpush.training.runs import ready, reloaded


def probed(
    data: World, plans: Iterable[tuple[Recipe, int]], probe: Callable[[World, Recipe], Diagnostics]
) -> list[pd.DataFrame]:
    """The steps of runs that a probe watches, side by side; the runs are not kept.

    Args:
        data: known by its configuration and trunk, as it is read anew in each process.
        plans: recipe and seed of each run.
        probe: makes the probe of a run, from the world and the recipe; can be sent to another process.
    """
    source = (data.config, trunk_of(data))
    return side_by_side([partial(_probed, source, plan, seed, probe) for plan, seed in plans])


def _probed(source: tuple, plan: Recipe, seed: int, probe: Callable[[World, Recipe], Diagnostics]) -> pd.DataFrame:
    data = reloaded(*source)
    model, dataset = ready(data, plan, seed=seed)
    watch = probe(data, plan)
    with one_thread():
        return train(model, plan, dataset, data.valid, seed=seed, diagnostics=watch, progress=False).steps

"""The searches of the lab of chapter 5: the same grid for all that are compared, on validation.

found = compute.run(ground, search(seeds=(1000,)))
best = tuning.best_points(found)                      # loss → rate and temperature
of_ears = tuning.best_points(compute.run(ground, rates(EARS, best, seeds=(1000,))))
recipe, overrides = heard(best, of_ears, "yamnet")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.studies.glap.losses import LOSSES

Best = Mapping[str, Mapping[str, Any]]  # label → options of a recipe, see `tuning.best_points`
MAIN = "several"  # the ears that stand for GLAP's general encoder
LOSS = "SigLIP"  # what all systems learn by, where losses are not compared
EVERY: Mapping[str, Any] = {"long": True, "languages": ("mul",)}
TRIED = f"test/{MAIN}/sound"  # scored, too, though validation decides
RATES = (1e-3, 3e-3)


def trained(ears: str, mix: str = "all") -> str:
    """The view that is learnt from.

    >>> trained("yamnet", "silent")
    'silent/yamnet'
    """
    return f"{mix}/{ears}"


def search(
    rates: Sequence[float] = RATES, taus: Sequence[float] = (0.05, 0.1, 0.2), *, seeds: Iterable[int]
) -> Experiment:
    """Rates and temperatures of the losses at the main batch, on validation; 18 runs."""
    trials = [
        Trial(label, recipe, {**overrides, "lr": lr, "tau": tau}, {"lr": lr, "tau": tau}, trained(MAIN), TRIED)
        for label, (recipe, overrides) in LOSSES.items()
        for lr in rates
        for tau in taus
    ]
    return Experiment("search", tuple(trials), tuple(seeds), **EVERY)


def rates(
    ears: Sequence[str],
    best: Best,
    values: Sequence[float] = RATES,
    *,
    name: str = "rates",
    seeds: Iterable[int],
) -> Experiment:
    """Rates of all ears with the best temperature of the main ones, on validation; two runs each."""
    recipe, overrides = LOSSES[LOSS]
    trials = [
        Trial(
            each, recipe, {**overrides, **best.get(LOSS, {}), "lr": lr}, {"lr": lr}, trained(each), f"test/{each}/sound"
        )
        for each in ears
        for lr in values
    ]
    return Experiment(name, tuple(trials), tuple(seeds), **EVERY)


def batch_search(
    losses: Mapping[str, System],
    best: Best,
    sizes: Sequence[int],
    rates: Sequence[float] = (5e-4, 2e-3, 8e-3),
    *,
    epochs: int,
    seeds: Iterable[int],
) -> Experiment:
    """The same rates for every loss at every batch, for `epochs`, on validation; three runs a loss and size.

    A temperature is learnt from its `start`.
    """
    trials = [
        Trial(
            at_size(label, size),
            recipe,
            {**overrides, "batch_size": size, "epochs": epochs, "lr": lr, **start(best, label)},
            {"lr": lr},
            trained(MAIN),
            TRIED,
        )
        for label, (recipe, overrides) in losses.items()
        for size in sizes
        for lr in rates
    ]
    return Experiment("batch-search", tuple(trials), tuple(seeds), **EVERY)


def start(best: Best, label: str) -> dict[str, Any]:
    """Where a loss's temperature starts: what was best at the main batch, for variants of SigLIP what was for SigLIP.

    >>> start({"SigLIP": {"lr": 1e-3, "tau": 0.1}}, "no bias")
    {'tau': 0.1}
    """
    return {"tau": tau} if (tau := best.get(label, best.get(LOSS, {})).get("tau")) else {}


def at_size(label: str, size: int) -> str:
    """What the search calls a loss at a size of the batch.

    >>> at_size("InfoNCE", 64)
    'InfoNCE, batch 64'
    """
    return f"{label}, batch {size}"


def tuned(best: Best, label: str = LOSS) -> System:
    """A loss with the options that its search chose."""
    recipe, overrides = LOSSES[label]
    return recipe, {**overrides, **best.get(label, {})}


def heard(best: Best, of_ears: Best, ears: str) -> System:
    """The loss of all systems, with the rate that suits the ears."""
    recipe, overrides = tuned(best)
    return recipe, {**overrides, **of_ears.get(ears, {})}


def at_the_edge(points: pd.DataFrame) -> list[str]:
    """Systems whose chosen rate is the smallest of their grid, so that a smaller one may be better still.

    points: of `tuning.points_table`, with the column lr.

    >>> at_the_edge(pd.DataFrame({"system": ["a", "a"], "lr": [1e-3, 3e-3], "chosen": [True, False]}))
    ['a']
    """
    least = points.groupby("system", sort=False)["lr"].transform("min")
    return points.loc[points["chosen"].astype(bool) & (points["lr"] == least), "system"].tolist()

"""The same budget for every system: a grid of options, one short search, the best point on *validation*.

search = grid("search", systems, {"lr": (5e-4, 1e-3), "tau": (0.05, 0.1)}, seeds=(1000,))
best = best_points(run(ground, search))           # {"infonce": {"lr": 1e-3, "tau": 0.05}, …}
tuned = Experiment.of("tuned", with_points(systems, best), seeds=range(10))
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import pandas as pd

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores


def grid(
    name: str,
    systems: Mapping[str, System],
    options: Mapping[str, Sequence[Any]],
    *,
    seeds: Iterable[int],
    views: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    **more: Any,
) -> Experiment:
    """Every system at every point of a grid, as many points for one as for another.

    Args:
        options: option of the recipe → values; a column of the tables each.
        seeds: of training, other ones than those of the comparison that follows.
        views: system → the view that it learns from and the one that it is tested on; "" for the experiment's.
        more: other attributes of the experiment.
    """
    points = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    trials = [
        Trial(system, recipe, {**overrides, **point}, point, *views.get(system, ("", "")))
        for system, (recipe, overrides) in systems.items()
        for point in points
    ]
    return Experiment(name, tuple(trials), tuple(seeds), **more)


def points_table(scores: Scores, *, by: Sequence[str] = ("system",)) -> pd.DataFrame:
    """A row a system and point: system, the options, `valid R@1` (best epoch's, mean over seeds, a fraction), `chosen`.

    Of points that are equal the first is chosen.

    by: columns, within each combination of which one point is chosen.
    """
    if not scores:
        return pd.DataFrame({"system": [], "valid R@1": [], "chosen": []})
    columns = ["system", *dict.fromkeys(name for trial in scores.experiment.trials for name in trial.where)]
    grouped = {"sort": False, "dropna": False}  # an option that only some systems have is missing of the others
    best = scores.history.groupby([*columns, "seed"], **grouped)["R@1"].max().reset_index()
    table = best.groupby(columns, **grouped)["R@1"].mean().rename("valid R@1").reset_index()
    winners = table.groupby(list(by), sort=False)["valid R@1"].idxmax()
    return table.assign(chosen=table.index.isin(winners))


def best_points(scores: Scores, *, by: Sequence[str] = ("system",)) -> dict[Any, dict[str, Any]]:
    """System → the options that did best on validation; empty where nothing was searched.

    by: columns, see `points_table`; with several a key is a tuple of their values, which are no options.
    """
    table = points_table(scores, by=by)
    table = table[table["chosen"].astype(bool)]
    columns = [name for name in table if name not in ("system", "valid R@1", "chosen", *by)]
    return {
        row[by[0]] if len(by) == 1 else tuple(row[name] for name in by): {
            name: row[name] for name in columns if not pd.isna(row[name])
        }
        for row in table.to_dict("records")
    }


def with_points(systems: Mapping[str, System], best: Mapping[str, Mapping[str, Any]]) -> dict[str, System]:
    """The systems with their best options; those that were not searched stay as they are."""
    return {name: (recipe, {**overrides, **best.get(name, {})}) for name, (recipe, overrides) in systems.items()}

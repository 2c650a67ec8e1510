"""The one search for all systems: which points it tries, and which it chooses."""

import numpy as np
import pandas as pd

from pullpush.lab import tuning
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import stamp
from pullpush.lab.scores import Scores

STAMP = stamp({}, seeds=(0,), seconds=0)


def scores_of(reached: dict[tuple, dict[int, float]], columns: list[str]) -> Scores:
    """Scores of a search: (system, *where) → seed → best validation R@1, reached in the first of two epochs."""
    trials, rows = [], []
    for (system, *values), by_seed in reached.items():
        where = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        trials.append(Trial(system, system, {}, where))
        for seed, best in by_seed.items():
            rows += [
                {"system": system, **where, "seed": seed, "epoch": epoch, "R@1": best - 0.2 * (epoch - 1)}
                for epoch in (1, 2)
            ]
    seeds = tuple(next(iter(reached.values())))
    clips = {(str(trial), seed): {"R@1": np.zeros(3)} for trial in trials for seed in seeds}
    history = pd.DataFrame(rows)
    return Scores(Experiment("search", tuple(trials), seeds, long=True), clips, history, history, STAMP)


def test_the_grid_tries_as_many_points_for_one_system_as_for_another():
    systems = {"infonce": ("infonce", {"dim": 8}), "siglip": ("siglip", {})}
    found = tuning.grid("search", systems, {"lr": (1e-3, 2e-3), "tau": (0.1, 0.2)}, seeds=(7,))
    assert [trial.system for trial in found.trials] == 4 * ["infonce"] + 4 * ["siglip"]
    assert found.trials[1].overrides == {"dim": 8, "lr": 1e-3, "tau": 0.2}
    assert found.trials[1].where == {"lr": 1e-3, "tau": 0.2}


def test_the_best_point_has_the_highest_mean_over_seeds_of_the_best_epoch():
    found = scores_of({("infonce", 0.1): {0: 0.5, 1: 0.3}, ("infonce", 0.2): {0: 0.45, 1: 0.45}}, ["tau"])
    table = tuning.points_table(found)
    assert list(table["chosen"]) == [False, True]
    np.testing.assert_allclose(table["valid R@1"], [0.4, 0.45])
    assert tuning.best_points(found) == {"infonce": {"tau": 0.2}}


def test_one_point_is_chosen_within_each_of_several_columns():
    reached = {
        ("infonce", n, tau): {0: value}
        for (n, tau), value in zip([(1, 0.1), (1, 0.2), (2, 0.1), (2, 0.2)], (0.4, 0.3, 0.5, 0.6), strict=True)
    }
    found = tuning.best_points(scores_of(reached, ["length", "tau"]), by=("system", "length"))
    assert found == {("infonce", 1): {"tau": 0.1}, ("infonce", 2): {"tau": 0.2}}


def test_an_option_that_only_some_systems_have_is_chosen_for_those():
    reached = {
        ("infonce", 0.1, None): {0: 0.4},
        ("infonce", 0.2, None): {0: 0.3},
        ("siglip", 0.1, -10.0): {0: 0.2},
        ("siglip", 0.1, -3.0): {0: 0.3},
    }
    assert tuning.best_points(scores_of(reached, ["tau", "bias"])) == {
        "infonce": {"tau": 0.1},
        "siglip": {"tau": 0.1, "bias": -3.0},
    }


def test_where_nothing_was_searched_every_system_keeps_its_own():
    empty = Scores(Experiment("search", (Trial("a", "infonce"),), (0,)), {}, pd.DataFrame(), pd.DataFrame(), STAMP)
    assert tuning.best_points(empty) == {}
    assert tuning.best_points(empty, by=("system", "length")) == {}
    systems = {"a": ("infonce", {"dim": 8})}
    assert tuning.with_points(systems, {}) == systems
    assert tuning.with_points(systems, {"a": {"tau": 0.2}}) == {"a": ("infonce", {"dim": 8, "tau": 0.2})}

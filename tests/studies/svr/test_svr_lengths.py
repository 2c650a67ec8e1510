"""The race to its end: searched and compared at every length, on a tiny world."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from pullpush.lab import compute, tuning
from pullpush.lab.experiments import Experiment
from pullpush.studies.svr import figures, histories, lengths

BASE, SVR = "infonce", "infonce+bi-dynamic-svr"
SYSTEMS = {BASE: ("infonce", {"tau": 0.07}), SVR: (SVR, {}), "siglip": ("siglip", {})}
PLAIN = [{"tau": 0.05}, {"tau": 0.1}]
POINTS = {BASE: PLAIN, SVR: PLAIN, "siglip": [{"tau": 0.1, "bias": bias} for bias in (-10.0, -3.0)]}
SIZES = {"lengths": (1, 2), "epochs": 1}


@pytest.fixture(scope="module")
def raced(svr_ground):
    searched = compute.run(svr_ground, _soon(lengths.searched(SYSTEMS, POINTS, **SIZES, seeds=(1000,))))
    best = tuning.best_points(searched, by=("system", "length"))
    return best, compute.run(svr_ground, _soon(lengths.raced(SYSTEMS, best, **SIZES, seeds=(0, 1))))


def _soon(experiment: Experiment) -> Experiment:
    return replace(experiment, long=False)


def test_every_system_is_searched_at_every_length_with_that_many_epochs():
    search = lengths.searched(SYSTEMS, POINTS, **SIZES, seeds=(1000,))
    assert search.long
    assert len(search.trials) == 2 * (2 + 2 + 2)
    assert all(trial.overrides["epochs"] == trial.where["length"] for trial in search.trials)
    bias = [trial.overrides.get("bias") for trial in search.trials if trial.where["length"] == 2]
    assert bias == [None, None, None, None, -10.0, -3.0]


def test_every_length_has_its_own_point():
    best = {(BASE, 1): {"tau": 0.05}, (BASE, 2): {"tau": 0.1}}
    trials = lengths.raced({BASE: SYSTEMS[BASE]}, best, **SIZES, seeds=(0,)).trials
    assert [(t.where["length"], t.overrides) for t in trials] == [
        (1, {"tau": 0.05, "epochs": 1}),
        (2, {"tau": 0.1, "epochs": 2}),
    ]
    longer = lengths.raced({BASE: SYSTEMS[BASE]}, best, lengths=(8,), epochs=1, seeds=(0,)).trials
    assert [t.overrides for t in longer] == [{"tau": 0.1, "epochs": 8}]
    unsearched = lengths.raced({BASE: SYSTEMS[BASE]}, {}, **SIZES, seeds=(0,)).trials
    assert [t.overrides["tau"] for t in unsearched] == [0.07, 0.07]


def test_gains_are_the_contrasts_of_each_length(raced):
    best, scores = raced
    assert set(best) == {(system, n) for system in SYSTEMS for n in (1, 2)}
    assert set(best["siglip", 1]) == {"tau", "bias"}
    table = lengths.gains(scores, [(SVR, BASE), ("siglip", BASE)])
    assert table[["system", "over", "length"]].values.tolist() == [
        [SVR, BASE, 1],
        [SVR, BASE, 2],
        ["siglip", BASE, 1],
        ["siglip", BASE, 2],
    ]
    one = scores.contrast(SVR, BASE, "R@1", {"length": 2})
    row = table.iloc[1]
    assert row["difference"] == pytest.approx(100 * one.value)
    assert row["low"] == pytest.approx(100 * one.low)


def test_targets_are_those_of_the_runs_of_one_length(raced):
    _, scores = raced
    table = lengths.epochs_to_target(scores, [(SVR, BASE), ("siglip", BASE)])
    assert table[["length", "system"]].values.tolist() == [[n, name] for n in (1, 2) for name in (BASE, SVR, "siglip")]
    own = histories.epochs_to_target(
        scores.history[scores.history["length"] == 2], [BASE, SVR, "siglip"], baseline=BASE
    )
    assert table[table["length"] == 2]["reached"].tolist() == own["reached"].tolist()


def test_the_figure_has_a_panel_for_what_is_reached_and_one_a_baseline(raced):
    _, scores = raced
    gains = lengths.gains(scores, [(SVR, BASE), ("siglip", SVR)])
    drawn = figures.gains_by_length(scores.table, gains)
    assert isinstance(drawn, Figure)
    titles = [ax.get_title() for ax in drawn.axes]
    assert titles == ["reached", "over InfoNCE", "over InfoNCE + bi-DynamicSVR"]
    assert [label.get_text() for label in drawn.axes[1].get_xticklabels()] == ["×1", "×2"]

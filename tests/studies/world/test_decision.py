"""The rule by which an encoder is chosen, on scores whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.errors import PullPushError
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.studies.world.decision import BRIDGE, cheapest_of_the_best, floor, sentence

TEST, SEEDS, CLIPS = "new", (0, 1, 2), 400


def scores(**means: float) -> Scores:
    """Systems whose hits by clip have these means, independent of each other."""
    rng = np.random.default_rng(1)
    trials = tuple(Trial(name, "infonce", {}, {"test": TEST}) for name in means)
    clips = {
        (str(trial), seed): {"R@1": (rng.random(CLIPS) < means[trial.system]).astype(float)}
        for trial in trials
        for seed in SEEDS
    }
    none = pd.DataFrame({"system": [], "seed": [], "epoch": [], "step": []})
    return Scores(Experiment("ears", trials, SEEDS), clips, none, none, Stamp("now", "", SEEDS, 0.0, {}))


def test_the_best_is_taken_where_all_cheaper_ones_are_clearly_behind():
    choice = cheapest_of_the_best(scores(cheap=0.2, dear=0.5), ("cheap", "dear"), test=TEST)
    assert (choice.system, choice.best) == ("dear", "dear")
    assert choice.behind["cheap"].low > 0
    assert "**dear**" in sentence(choice, test=TEST)
    assert "which is cheaper" in sentence(choice, test=TEST)


def test_the_cheapest_is_taken_that_cannot_be_told_from_the_best():
    found = scores(cheap=0.2, middle=0.5, dear=0.505)
    choice = cheapest_of_the_best(found, ("cheap", "middle", "dear"), test=TEST)
    assert choice.system == "middle"
    if choice.best == "dear":
        assert choice.behind["middle"].low <= 0
        assert "holds zero" in sentence(choice, test=TEST)


def test_the_cheapest_is_taken_at_once_where_it_is_the_best():
    choice = cheapest_of_the_best(scores(cheap=0.5, dear=0.2), ("cheap", "dear"), test=TEST)
    assert (choice.system, choice.behind) == ("cheap", {})
    assert "No other system scores higher." in sentence(choice, test=TEST)


def test_the_sentence_has_the_numbers_of_the_measurement():
    found = scores(cheap=0.2, dear=0.5)
    choice = cheapest_of_the_best(found, ("cheap", "dear"), test=TEST)
    mean = found.values("dear", "R@1", {"test": TEST}).mean()
    assert f"{100 * mean:.1f} %" in sentence(choice, test=TEST)
    assert f"{100 * choice.behind['cheap'].value:+.1f} points" in sentence(choice, test=TEST)
    assert choice.scores["dear"] == pytest.approx(mean)


def test_what_was_trained_is_set_beside_the_bridge_and_chance():
    systems = {"a": 0.05, "b": 0.0812, BRIDGE: 0.3}
    rows = [{"test": TEST, "system": name, "metric": "R@10", "value": v, "chance": 0.04} for name, v in systems.items()]
    said = floor(pd.DataFrame(rows), test=TEST, metric="R@10").data
    trained = "5.0 to 8.1 % for what was trained, the control among it"
    assert said == f"On new, R@10 is 30.0 % for the bridge, {trained}, and 4.0 % by chance."
    alone = floor(pd.DataFrame(rows[2:]), test=TEST, metric="R@10").data
    assert alone == "On new, R@10 is 30.0 % for the bridge, and 4.0 % by chance."


def test_a_test_that_the_data_do_not_have_is_named():
    table = pd.DataFrame([{"test": TEST, "system": BRIDGE, "metric": "R@10", "value": 0.3, "chance": 0.04}])
    with pytest.raises(PullPushError, match="no held-out events"):
        floor(table, test="held-out events", metric="R@10")

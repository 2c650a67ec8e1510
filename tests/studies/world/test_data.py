"""The experiment of the page *Ears*: what it trains, what it tests on, and what chance gives."""

import numpy as np
import pytest
import torch

from pullpush.lab import compute, session
from pullpush.metrics.annotations import graded_by_clip
from pullpush.studies.world import data


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return data.Context(session.start("00-ears", profile="smoke", out=tmp_path_factory.mktemp("out")))


def test_every_system_is_trained_once_a_seed_and_tested_on_every_test(ground):
    systems = {name: each for name, each in data.systems_of(ground.book).items() if name in (data.SCRATCH, data.WHOLE)}
    experiment = data.on_tests("ears", systems, {data.SCRATCH: {"lr": 3e-4}}, seeds=(0, 1))
    plans = compute.plans_of(ground, experiment)
    assert len(plans) == len(systems) * len(data.TESTS) * 2
    assert len({plan.key for plan in plans.values()}) == len(systems) * 2
    rates = {trial.system: plan.recipe.lr for (trial, _), plan in plans.items()}
    assert rates == {data.SCRATCH: 3e-4, data.WHOLE: 1e-3}


def test_a_test_is_the_split_that_its_name_says(ground):
    whole = ground.view("sound").data
    for split in data.TESTS.values():
        view = ground.view(f"sound/{split}").data
        assert view.test.key == whole.split(split).key
        assert view.train.key == whole.train.key


def test_held_out_events_are_in_no_training_scene_and_held_out_recordings_in_none_either(ground):
    world = ground.view("sound").data
    events = {
        split: {sound.event for scene in world.split(split).columns["scene"] for sound in scene.sounds}
        for split in ("train", "recordings", "events", "heard")
    }
    assert not events["events"] & events["train"]
    assert events["recordings"] <= events["train"]
    assert events["recordings"] == events["heard"]
    table = data.contents(world).set_index("scenes of")
    assert table.loc["held-out events", "events"] == len(events["events"])


def test_the_search_gives_every_system_the_same_budget(ground):
    search = data.rates(data.systems_of(ground.book), (1e-3, 3e-4), seeds=(1000,), epochs=1)
    tried: dict[str, list[tuple[float, int]]] = {}
    for trial in search.trials:
        tried.setdefault(trial.system, []).append((trial.overrides["lr"], trial.overrides["epochs"]))
    assert set(map(tuple, tried.values())) == {((1e-3, 1), (3e-4, 1))}
    assert set(tried) == set(data.systems_of(ground.book)) >= set(data.BY_COST)


def test_chance_is_what_random_orders_give(ground):
    clips = ground.view("sound").data.split("recordings")
    lucky, relevance = data.by_chance(clips), clips.relevance()
    captions = len(clips.captions("eng")[0])
    torch.manual_seed(0)
    found = []
    for _ in range(60):
        audio, text = torch.randn(len(clips), 64), torch.randn(len(clips), captions, 64)
        unit = torch.nn.functional.normalize
        found.append(graded_by_clip(unit(audio, dim=-1), unit(text, dim=-1), relevance))
    for name in ("T2A nDCG@10", "A2T nDCG@10"):
        mean = np.mean([values[name].mean().item() for values in found])
        assert lucky[name] == pytest.approx(mean, rel=0.05)
    assert lucky["T2A R@1"] == pytest.approx(1 / len(clips))
    assert set(data.SCORES) <= lucky.keys()


def test_systems_of_two_experiments_are_compared_over_the_seeds_that_both_have(ground):
    ways = data.systems_of(ground.book)
    first = compute.compute(ground, data.on_tests("one", {data.SCRATCH: ways[data.SCRATCH]}, {}, seeds=(0, 1)))
    second = compute.compute(ground, data.on_tests("two", {data.WHOLE: ways[data.WHOLE]}, {}, seeds=(0,)))
    both = first + second
    assert [both.seeds(name, {"test": "held-out events"}) for name in (data.SCRATCH, data.WHOLE)] == [[0, 1], [0]]
    gain = both.contrast(data.WHOLE, data.SCRATCH, "R@1", {"test": "held-out events"})
    ours, theirs = (
        each.values(name, "R@1", {"test": "held-out events"}, seeds=[0])
        for each, name in ((second, data.WHOLE), (first, data.SCRATCH))
    )
    assert gain.value == pytest.approx(ours.mean() - theirs.mean())
    table = data.standings(both, ground.view("sound").data)
    assert len(table) == 2 * len(data.TESTS) * len(data.SCORES)

"""The radius taken apart: which systems there are, and at which points they are compared."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pullpush.errors import PullPushError
from pullpush.lab import session
from pullpush.studies.svr import data, results
from pullpush.training.recipes import recipe


@pytest.fixture
def ground(tmp_path):
    return data.Protocols(session.start("02-mechanism", profile="quick", out=tmp_path))


def test_the_design_holds_every_combination_once_and_its_ends_are_svr_and_infonce():
    cells = data.factorial(0.4)
    switches = [tuple(options[name] for name in data.EFFECTS) for _, options in cells.values()]
    assert len(set(switches)) == 8
    assert (switches[0], switches[-1]) == ((False, False, False), (True, True, True))
    assert {options["radius"] for _, options in cells.values()} == {0.4}
    for name, (_, options) in cells.items():
        assert name.removeprefix("SVR:") == "".join(data.EFFECTS[e] for e in data.EFFECTS if options[e]) or "twice"


@pytest.mark.parametrize("system", data.SYSTEMS)
def test_every_system_is_a_recipe_with_a_temperature_and_a_rate(system):
    name, options = data.SYSTEMS[system]
    made = recipe(name, tau=0.2, lr=1e-4, **options)
    assert made.lr == 1e-4
    assert made.terms[0].settings["tau"] == 0.2


def test_the_search_tries_every_system_of_a_protocol_at_the_same_points(ground):
    search, points = data.searched(ground, seed=0), {}
    for trial in search.trials:
        protocol, *point = trial.where.values()
        points.setdefault((protocol, trial.system), []).append(tuple(point))
        assert trial.overrides["epochs"] == ground.epochs(protocol) // 2
    for protocol in data.TITLES:
        assert len({tuple(found) for (where, _), found in points.items() if where == protocol}) == 1
    compared = data.compared(ground, {}, seed=0)
    assert not set(search.seeds) & {seed for trial in compared.trials for seed in trial.seeds}


def test_each_system_is_compared_at_its_own_point_and_fine_tuned_ones_are_few(ground):
    points = {("frozen/cnn", "infonce"): {"tau": 0.15, "lr": 1e-3}}
    trials = {(t.where["protocol"], t.system): t for t in data.compared(ground, points, seed=3).trials}
    assert trials["frozen/cnn", "infonce"].overrides == {"tau": 0.15, "lr": 1e-3}
    assert trials["frozen/cnn", "twice"].overrides == data.SYSTEMS["twice"][1]
    assert trials["frozen/cnn", "infonce"].seeds[0] == 3
    assert {system for protocol, system in trials if protocol == "tuned/yamnet"} == set(data.DECISIVE)
    some = data.compared(ground, {}, seed=0, name="some", systems={"frozen/cnn": data.FIXED})
    assert {len(trial.seeds) for trial in some.trials} == {data.CONTROLS}


def test_negatives_are_told_apart_by_the_truth_of_all_training_clips(tmp_path):
    small = data.Protocols(session.start("02-mechanism", profile="smoke", out=tmp_path))
    clips = small.view(data.GRADED).data.train
    audio, text = torch.from_numpy(clips.columns["teachers"][:, 0]).float().unbind(dim=1)
    torch.testing.assert_close(audio @ text.T, clips.relevance().T, rtol=1e-3, atol=0)
    experiment = data.told_apart(small, {"tau": 0.2}, seed=0)
    assert {trial.overrides["tau"] for trial in experiment.trials} == {0.2}
    values = {"related": 0.3, "unrelated": 0.1}  # what each kind's push is worth
    gain = lambda system, name, at: np.full((2, 3), sum(values[kind] * at[kind] for kind in values))  # noqa: E731
    table = results.told_apart(SimpleNamespace(experiment=experiment, values=gain)).set_index(["negatives", "metric"])
    assert table.loc[("those that fit in part", "nDCG@10"), "value"] == pytest.approx(-0.3)
    assert table.loc[("those that do not fit", "R@1"), "value"] == pytest.approx(-0.1)


def test_a_way_from_one_dataset_to_another_needs_two():
    with pytest.raises(PullPushError, match=r"one dataset here, mine: .* `other`"):
        data.routes(("mine",))

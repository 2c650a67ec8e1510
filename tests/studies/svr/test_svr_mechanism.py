"""The radius taken apart: which systems there are, at which points they are compared, and what is read from them."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from torch.nn import functional as F

from pullpush.lab import session, tuning
from pullpush.lab.experiments import Experiment, ExperimentError, Trial
from pullpush.lab.ledger import Ledger
from pullpush.lab.provenance import stamp
from pullpush.lab.scores import Scores
from pullpush.show.layout import PAGE_WIDTH
from pullpush.studies.svr import decomposition, drifts, mechanism, mechanism_figures as figures, system_steps
from pullpush.studies.svr.protocols import TITLES, Protocols
from pullpush.training.recipes import recipe

CLIPS = 20
STAMP = stamp({}, seeds=(0,), seconds=0)


def scores_of(values: dict[tuple[str, str], list[float]], history: pd.DataFrame | None = None) -> Scores:
    """Scores of an experiment: (protocol, system) → mean R@1 of each seed, with the same noise of clips in all."""
    noise = np.random.default_rng(0).normal(0, 1e-3, CLIPS)
    noise -= noise.mean()
    trials = [
        Trial(system, "infonce", {}, {"protocol": protocol}, data=protocol, seeds=tuple(range(len(means))))
        for (protocol, system), means in values.items()
    ]
    experiment = Experiment("effects", tuple(trials), (0, 1), long=True)
    found = list(zip(trials, values.values(), strict=True))
    clips = {(str(t), seed): {"R@1": mean + noise} for t, means in found for seed, mean in enumerate(means)}
    rows = [
        {"system": t.system, "protocol": t.where["protocol"], "seed": seed, "epoch": epoch, "step": 10 * epoch,
         "R@1": mean * epoch / 4}
        for t, means in found for seed, mean in enumerate(means) for epoch in range(1, 5)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    return Scores(experiment, clips, history if history is not None else table, table, STAMP)


def design(protocol: str, **added: float) -> dict[tuple[str, str], list[float]]:
    """All cells of the 2³ design: what the letters add to a half, for two seeds that differ a little."""
    return {
        (protocol, decomposition.cell(letters)): [
            0.5 + seed / 1000 + sum(added.get(letter, 0.0) for letter in letters) for seed in (0, 1)
        ]
        for letters in ("", "A", "J", "JA", "P", "PA", "PJ", "PJA")
    }


def test_the_design_holds_every_combination_once_and_its_ends_are_svr_and_infonce():
    cells = mechanism.factorial(0.4)
    assert list(cells) == [decomposition.cell(letters) for letters in ("", "A", "J", "JA", "P", "PA", "PJ", "PJA")]
    switches = [tuple(options[name] for name in mechanism.EFFECTS) for _, options in cells.values()]
    assert len(set(switches)) == 8
    assert switches[0] == (False, False, False)
    assert switches[-1] == (True, True, True)
    assert {options["radius"] for _, options in cells.values()} == {0.4}


@pytest.mark.parametrize("system", mechanism.SYSTEMS)
def test_every_system_is_a_recipe_with_a_temperature_and_a_rate(system):
    name, options = mechanism.SYSTEMS[system]
    made = recipe(name, tau=0.2, lr=1e-4, **options)
    assert made.lr == 1e-4
    assert made.terms[0].settings["tau"] == 0.2


def test_the_search_tries_every_system_of_a_protocol_at_the_same_points(tmp_path):
    ground = Protocols(session.start("02-mechanism", profile="quick", out=tmp_path))
    experiment = mechanism.searched(ground, seed=0)
    points = {}
    for trial in experiment.trials:
        where = dict(trial.where)
        protocol = where.pop("protocol")
        points.setdefault((protocol, trial.system), []).append(tuple(where.values()))
        assert trial.overrides["epochs"] == ground.epochs(protocol) // 2
    for protocol in TITLES:
        assert len({tuple(found) for (where, _), found in points.items() if where == protocol}) == 1
    assert not set(experiment.seeds) & {
        seed for trial in mechanism.compared(ground, {}, seed=0).trials for seed in trial.seeds
    }


def test_each_system_is_compared_at_its_own_point(tmp_path):
    ground = Protocols(session.start("02-mechanism", profile="quick", out=tmp_path))
    points = {("frozen/cnn", "infonce"): {"tau": 0.15, "lr": 1e-3}}
    trials = {(t.where["protocol"], t.system): t for t in mechanism.compared(ground, points, seed=3).trials}
    assert trials["frozen/cnn", "infonce"].overrides == {"tau": 0.15, "lr": 1e-3}
    assert trials["frozen/cnn", "twice"].overrides == mechanism.SYSTEMS["twice"][1]
    assert trials["frozen/cnn", "infonce"].seeds[0] == 3
    assert {system for protocol, system in trials if protocol == "tuned/yamnet"} == set(mechanism.DECISIVE)


def test_smaller_radii_and_one_point_are_tried_where_encoders_are_frozen(tmp_path):
    ground = Protocols(session.start("02-mechanism", profile="quick", out=tmp_path))
    near = mechanism.nearer(ground)
    assert set(near) == {"frozen/cnn", "frozen/yamnet"}
    for named in near.values():
        assert list(named) == ["SVR:J, R = 0.3", "SVR:PJA, R = 0.3"]
        for name, (recipe_name, options) in named.items():
            letters = name.removeprefix("SVR:").partition(",")[0]
            same, full_size = mechanism.SYSTEMS[f"SVR:{letters}"]
            assert (recipe_name, {**options, "radius": mechanism.RADIUS}) == (same, full_size)
    search = mechanism.searched(ground, seed=0, name="search-nearer", systems=near)
    assert len(search.trials) == 2 * 2 * len(mechanism.POINTS)
    one = mechanism.at_one_point(ground, seed=0)
    assert {t.where["protocol"] for t in one.trials} == {"frozen/cnn", "frozen/yamnet"}
    assert {len(t.seeds) for t in one.trials} == {mechanism.CONTROLS}
    assert {(t.overrides["tau"], t.overrides["lr"]) for t in one.trials} == {(0.15, 1e-3)}
    assert {t.system for t in one.trials} == set(mechanism.factorial())


def test_the_best_point_is_that_of_the_best_epoch_on_validation():
    trials = [
        Trial("infonce", "infonce", {}, {"protocol": "frozen/cnn", "tau": tau, "lr": 1e-3}) for tau in (0.05, 0.1, 0.2)
    ]
    experiment = Experiment("search", tuple(trials), (1000,), long=True)
    reached = {0.05: 0.3, 0.1: 0.5, 0.2: 0.5}
    rows = [
        ("infonce", "frozen/cnn", tau, 1e-3, 1000, epoch, best - 0.2 * (epoch - 1))
        for tau, best in reached.items()
        for epoch in (1, 2)
    ]
    history = pd.DataFrame(rows, columns=["system", "protocol", "tau", "lr", "seed", "epoch", "R@1"])
    clips = {(str(trial), 1000): {"R@1": np.zeros(3)} for trial in trials}
    found = tuning.best_points(Scores(experiment, clips, history, history, STAMP), by=("protocol", "system"))
    assert found == {("frozen/cnn", "infonce"): {"tau": 0.1, "lr": 1e-3}}
    assert tuning.best_points(Scores(experiment, {}, history, history, STAMP), by=("protocol", "system")) == {}


def test_main_effects_are_those_that_were_put_in_and_what_was_not_crossed_stands_alone():
    values = design("frozen/cnn", P=0.04, J=-0.02)
    values |= {("tuned/yamnet", name): [0.6, 0.61] for name in mechanism.DECISIVE}
    values["tuned/yamnet", "SVR:P"] = [0.65, 0.66]
    table = decomposition.main_effects(scores_of(values)).set_index(["protocol", "effect"])
    assert table.loc[("frozen/cnn", "probabilities"), "value"] == pytest.approx(0.04)
    assert table.loc[("frozen/cnn", "Jacobian"), "value"] == pytest.approx(-0.02)
    assert table.loc[("frozen/cnn", "partner"), "value"] == pytest.approx(0, abs=1e-12)
    assert table.loc[("tuned/yamnet", "probabilities"), "value"] == pytest.approx(0.05)
    assert dict(zip(table.index, table["kind"], strict=True))["tuned/yamnet", "Jacobian"] == "alone"
    both = {"own": table.reset_index(), "one": table.reset_index().head(1)}
    shown = decomposition.effects_table(both)
    assert list(shown["point"]) == 6 * ["own"] + ["one"]
    assert shown.loc[0, ["protocol", "effect"]].tolist() == [TITLES["frozen/cnn"], "probabilities"]
    assert shown.loc[0, "difference [95 %]"].startswith("+4.0 ±")
    assert shown.loc[6, "difference [95 %]"] == shown.loc[0, "difference [95 %]"]


def test_scaled_pushes_lie_beside_infonce_at_one():
    values = {("frozen/cnn", name): [0.5, 0.51] for name in ("infonce", *mechanism.SCALED)}
    values["frozen/cnn", "across ×0.5"] = [0.4, 0.41]
    table = decomposition.scaled(scores_of(values)).set_index(["part", "factor"])
    assert table.loc[("perpendicular", 0.5), "value"] == pytest.approx(-0.1)
    assert table.loc[("perpendicular", 1.0), "value"] == table.loc[("sideways", 1.0), "value"] == 0
    assert set(table.loc["sideways"].index) == {0.0, 0.5, 1.0}


def test_runs_that_were_trained_twice_stand_side_by_side():
    frozen = "frozen/cnn"
    first = scores_of({(frozen, "infonce"): [0.5, 0.52, 0.6], (frozen, "twice"): [0.53, 0.55, 0.6]})
    second = scores_of({(frozen, "infonce"): [0.51, 0.50], (frozen, "twice"): [0.5, 0.56], (frozen, "new"): [0.1, 0.1]})
    table = decomposition.again(first, second)
    assert list(table["system"]) == ["infonce", "twice"], "what only one of them trained is left out"
    assert list(table["seeds"]) == [2, 2]
    assert np.allclose(table[["first", "second", "one run"]], [[51, 50.5, 2], [54, 53, 3]])
    assert table["over infonce, first"][0] == ""
    assert [table[f"over infonce, {name}"][1].split(" ± ")[0] for name in ("first", "second")] == ["+3.0", "+2.5"]
    later = scores_of({(frozen, "infonce"): [0.5, 0.5]})
    trial = replace(later.experiment.trials[0], seeds=(7, 8))
    moved = replace(later.experiment, trials=(trial,))
    elsewhere = {(str(trial), seed + 7): values for (_, seed), values in later.clips.items()}
    for other in (scores_of({(frozen, "new"): [0.1, 0.1]}), replace(later, experiment=moved, clips=elsewhere)):
        with pytest.raises(ExperimentError, match="declare no run alike"):
            decomposition.again(first, other)


def pairs(count: int = 48, size: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    audio = F.normalize(torch.randn(count, size, generator=generator, dtype=torch.float64), dim=1)
    noise = torch.randn(count, size, generator=generator, dtype=torch.float64)
    return F.normalize(audio + 0.4 * noise / size**0.5, dim=1), audio


def test_a_scaled_push_changes_what_is_across_and_a_switch_what_it_is_called_after():
    text, audio = pairs()
    table = system_steps.step_of(mechanism.SYSTEMS, text, audio, 0.2, batch_size=24).set_index("system")
    assert "SVR, learnt R" not in table.index
    across = table["across/along"]
    assert across["across ×0.5"] < across["infonce"] < across["across ×1.5"]
    assert across["SVR:J"] < across["twice"]
    assert table.loc["SVR:P", "parallel"] < table.loc["twice", "parallel"]
    assert (table["audio to audio"] > 0).to_dict() == {
        name: name.startswith("SVR") and "A" in name[4:] for name in table.index
    }


def test_the_part_along_is_compared_batch_by_batch():
    text, audio = pairs()
    assert system_steps.parallel_change(text, audio, 0.2, 1e-6, batch_size=24).value == pytest.approx(0, abs=1e-4)
    assert system_steps.parallel_change(text, audio, 0.2, 0.5, batch_size=24).clips == 2


def test_the_claim_about_the_jacobian_is_judged_or_left_with_a_reason():
    whole = scores_of({("tuned/yamnet", "twice"): [0.6, 0.6], ("tuned/yamnet", "SVR:J"): [0.57, 0.57]})
    part = scores_of({("random/cnn", "infonce"): [0.6, 0.6]})
    rows = []
    for scores in (whole, part, replace(whole, clips={})):
        ledger = Ledger("02-mechanism")
        decomposition.judge(ledger, scores)
        rows.append(ledger.table().set_index("id").loc["supclap-s3-suppression-gains"])
    assert rows[0]["value"] == pytest.approx(-3)
    assert rows[1]["reason"].startswith("not in this profile's experiment")
    assert "long" in rows[2]["reason"]


def test_drift_is_that_of_the_second_half_and_correlates_by_ranks_of_systems():
    values = {("frozen/cnn", name): [0.1 * n, 0.1 * n] for n, name in enumerate(("infonce", "twice", "SVR:P"), 1)}
    scores = scores_of(values)
    steps = scores.history.assign(**dict.fromkeys(drifts.DRIFTS, 0.0))
    for number, name in enumerate(("infonce", "twice", "SVR:P")):
        late = (steps["system"] == name) & (steps["step"] > 20)
        steps.loc[late, list(drifts.DRIFTS)] = -float(number)
    watched = Scores(scores.experiment, scores.clips, scores.history, steps, STAMP)
    runs = drifts.drift_and_recall(watched)
    assert runs["update_drift"].tolist() == [0, 0, -1, -1, -2, -2]
    assert drifts.rank_correlations(runs)["correlation"].tolist() == pytest.approx([-1, -1, -1])
    assert drifts.rank_correlations(runs, without=["SVR:P"])["systems"].tolist() == [2, 2, 2]
    with pytest.raises(ExperimentError, match="give it a watch"):
        drifts.drift_and_recall(scores)


def drawn() -> dict[str, Figure]:
    """Every figure of the page, from small tables."""
    values = design("frozen/cnn", P=0.04) | {("tuned/yamnet", name): [0.6, 0.61] for name in mechanism.DECISIVE}
    values |= {("frozen/cnn", name): [0.4, 0.42] for name in ("infonce", *mechanism.SCALED)}
    scores = scores_of(values)
    steps = system_steps.step_of(mechanism.SYSTEMS, *pairs(), 0.2, batch_size=24)
    watched = scores.history.assign(**dict.fromkeys(drifts.DRIFTS, 0.3))
    runs = drifts.drift_and_recall(Scores(scores.experiment, scores.clips, scores.history, watched, STAMP))
    return {
        "effects": figures.effects(decomposition.main_effects(scores)),
        "scaled_push": figures.scaled_push(decomposition.scaled(scores)),
        "gains_by_quantity": figures.gains_by_quantity(decomposition.over(scores, "infonce").merge(steps, on="system")),
        "race": figures.race(scores.history, {"infonce": "InfoNCE", "SVR:P": "probabilities"}),
        "drift_against_recall": figures.drift_against_recall(runs, without=["across ×0"]),
    }


def test_every_figure_fits_the_page_names_its_axes_and_tells_protocols_apart():
    made = drawn()
    named = {f.__name__ for _, f in inspect.getmembers(figures, inspect.isfunction) if f.__module__ == figures.__name__}
    assert {name for name in named if not name.startswith("_")} == set(made)
    for name, figure in made.items():
        assert figure.get_figwidth() <= PAGE_WIDTH
        figure.canvas.draw()
        panels = [ax for ax in figure.axes if ax.has_data() and ax.get_visible()]
        assert all(ax.get_xlabel() for ax in panels), name
        assert figure.legends, name
    assert len(set(figures.COLOURS.values())) == len(set(figures.MARKERS.values())) == len(TITLES)

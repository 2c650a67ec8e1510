"""Three stages as views: names, what each starts from, what is trained before what, and one tiny run through all."""

from __future__ import annotations

import pytest
import torch

from pullpush.errors import UnknownNameError
from pullpush.lab import compute, session
from pullpush.studies.distill import experiments, rates
from pullpush.studies.distill.grounds import BATCH, TAU, Grounds
from pullpush.studies.distill.stages import AMBIGUITY, EARS, LAST, SYSTEMS, Stage, parsed
from pullpush.studies.distill.teachers import Blind, Run, Truth
from pullpush.training.recipes import recipe


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return Grounds(session.start("06-distill-cluster-lab", profile="smoke", out=tmp_path_factory.mktemp("out")))


def test_names_of_views_are_read_as_they_were_written():
    for stage in (*SYSTEMS.values(), Stage("refinetune", "truth", "mix", "generic:8")):
        for ears in EARS:
            for ambiguity in AMBIGUITY:
                assert parsed(stage.named(ears, ambiguity)) == (stage, ears, ambiguity)
    for name, message in (
        ("finetun/yamnet", "kind"),
        ("finetune techer=truth", "part of a stage"),
        ("finetune x", "part"),
    ):
        with pytest.raises(UnknownNameError, match=message):
            parsed(name)
    with pytest.raises(UnknownNameError, match="teacher"):
        Stage("finetune", "nobody")


def test_systems_are_those_of_table_1():
    """Distillation, augmentation and the source of clusters, switched on one after the other."""
    switches = [(bool(s.teacher), bool(s.augment), s.topics) for s in (SYSTEMS[name] for name in "12345")]
    assert switches == [
        (False, False, ""),
        (True, False, ""),
        (True, True, ""),
        (True, True, "finetuned"),
        (True, True, "generic"),
    ]
    assert SYSTEMS["4"].before == SYSTEMS["3, again"].before == SYSTEMS["3"] == LAST
    assert SYSTEMS["2"].before == Stage("pretrain")


def test_recipes_have_the_weights_and_temperature_of_the_paper(ground):
    for name in ("1, finetuned", "3", "5"):
        stage = SYSTEMS[name]
        own, overrides = ground.system(stage)
        view = ground.view(stage.named())
        made = recipe(own, **{**view.overrides, **overrides})
        assert {term.name: term.weight for term in made.terms} == {
            "1, finetuned": {"infonce": 1.0},
            "3": {"infonce": 1.0, "distillation": 1.0},
            "5": {"infonce": 1.0, "distillation": 1.0, "clusters": 0.05},
        }[name]
        assert made.terms[0].settings["tau"] == TAU == 0.05
        assert made.lr == rates.of_stage(stage, "yamnet")["lr"]
        if name == "5":
            assert dict(made.terms[2].options) == {"topics": rates.TOPICS, "dim": made.dim}
        assert made.batch_size <= BATCH


def test_every_stage_comes_after_what_it_starts_from_and_learns_from(ground):
    second = experiments.systems(ground, ["4"], ["yamnet"], seeds=(3,))
    cells = compute.plans_of(ground, second)
    (plan,) = cells.values()
    first, middle, last = compute.rounds(ground, second, cells)
    assert {each.key for each in first} == {ground.plan(Stage("pretrain"), ears, 3).key for ears in EARS}
    assert [each.key for each in middle] == [ground.plan(LAST, "yamnet", 3).key]
    assert [each.key for each in last] == [plan.key]
    assert plan.base == ground.plan(LAST, "yamnet", 3).path
    assert ground.plan(LAST, "yamnet", 3).base == ground.plan(Stage("pretrain"), "yamnet", 3).path
    assert plan.key == ground.plan(SYSTEMS["4"], "yamnet", 3).key, "an experiment's run is the ground's own"


def test_teachers_are_the_runs_of_the_seed(ground):
    runs = {ears: Run(ground.plan(Stage("pretrain"), ears, 5).key, ground.trunk(ears)) for ears in EARS}
    assert ground.labels("ensemble", 5) == tuple(runs.values())
    assert ground.labels("prediction", 5) == (runs["prediction"],)
    assert ground.labels("truth", 5) == (Truth(),)
    assert isinstance(ground.labels("blind", 5)[0], Blind)
    untrained = ground.labels("untrained", 5)
    assert not set(untrained) & set(runs.values())


def test_features_do_not_depend_on_what_is_taught(ground):
    plain, taught = ground.view("finetune/yamnet"), ground.view("finetune teacher=ensemble/yamnet")
    assert plain.data.train.key == taught.taught(0).train.key
    assert plain.data.identity != taught.taught(0).identity != taught.taught(1).identity


def test_the_smaller_part_is_in_the_larger(ground):
    large = ground.source(Stage("pretrain")).train.columns["scene"]
    small = ground.source(Stage("finetune")).train.columns["scene"]
    assert len(small) <= len(large)
    assert list(large[: len(small)]) == list(small)


def test_unknown_ears_and_ambiguities_are_refused(ground):
    with pytest.raises(UnknownNameError, match="ears"):
        ground.view("finetune/yamnett")
    with pytest.raises(UnknownNameError, match="ambiguity"):
        ground.view("finetune/yamnet/singel")
    with pytest.raises(UnknownNameError, match="source of topics"):
        ground.topics("genric", 0)


def test_a_system_goes_on_from_the_stage_before_and_follows_its_teachers(ground):
    """Soft labels change the weights, topics again; all start where the one before ended."""
    made = experiments.systems(ground, ["1", "1, finetuned", "2"], ["yamnet"], seeds=(0,))
    scores = compute.run(ground, made)
    runs = {trial.system: ground.plan(SYSTEMS[trial.system], "yamnet", 0).train().model for trial in made.trials}
    weights = {name: torch.cat([p.flatten() for p in model.parameters()]) for name, model in runs.items()}
    near = (weights["1, finetuned"] - weights["1"]).norm() / weights["1"].norm()
    assert 0 < near < 0.5, "a few small steps from where it began"
    assert not torch.equal(weights["2"], weights["1, finetuned"])
    assert {"mAP@16 multiple", "R@1 single"} <= set(scores.table.columns)

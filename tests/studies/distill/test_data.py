"""Three stages as views: names, what each starts from, what is trained before what, and one tiny run through all."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pullpush.lab import compute, session
from pullpush.lab.experiments import Experiment
from pullpush.lab.material import WIDE
from pullpush.studies.distill import data, experiments
from pullpush.studies.distill.labels import Blind, Dealt
from pullpush.studies.distill.stages import ENCODERS, LAST, SYSTEMS, Stage
from pullpush.studies.taught import Run, Truth
from pullpush.training.recipes import recipe


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    book = session.start("06-distill-cluster-lab", profile="smoke", out=tmp_path_factory.mktemp("out"))
    return data.Context(replace(book, settings=replace(book.settings, points=None)))


@pytest.fixture(scope="module")
def lesson(home, tmp_path_factory):
    return data.LessonContext(session.start("06-distill-cluster", profile="smoke", out=tmp_path_factory.mktemp("out")))


def one(ground, name, stage, seed=0):
    """An experiment of one system."""
    return Experiment("one", (ground.trial(name, stage),), (seed,), evaluations=("annotations",))


def test_stages_have_the_names_by_which_results_are_kept():
    names = {
        Stage("pretrain", encoder="prediction"): "pretrain/prediction",
        SYSTEMS["5"]: "refinetune teacher=ensemble augment=all topics=generic/yamnet",
        Stage("finetune", "yamnet", world="single"): "finetune teacher=yamnet/yamnet/single",
    }
    assert {stage: stage.name for stage in names} == names


def test_a_stage_needs_all_that_its_models_come_from():
    pretrained = {Stage("pretrain", encoder=each) for each in ENCODERS}
    assert set(SYSTEMS["3"].needs) == pretrained
    assert set(replace(SYSTEMS["4"], encoder="prediction").needs) == {
        *pretrained,
        LAST,
        replace(LAST, encoder="prediction"),
    }
    assert Stage("pretrain").needs == ()
    assert Stage("finetune", "truth").needs == (Stage("pretrain"),)
    assert {each.kind for each in Stage("finetune", "untrained").teachers} == {"untrained"}


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
    assert SYSTEMS["4"].start == SYSTEMS["3, again"].start == SYSTEMS["3"] == LAST
    assert SYSTEMS["2"].start == Stage("pretrain")


def test_recipes_have_the_weights_and_temperature_of_the_paper(ground):
    for name in ("1, finetuned", "3", "5"):
        stage = SYSTEMS[name]
        own, overrides = ground.system(stage)
        view = ground.view_of(stage)
        made = recipe(own, **{**view.overrides, **overrides})
        assert {term.name: term.weight for term in made.terms} == {
            "1, finetuned": {"infonce": 1.0},
            "3": {"infonce": 1.0, "distillation": 1.0},
            "5": {"infonce": 1.0, "distillation": 1.0, "clusters": 0.05},
        }[name]
        assert made.terms[0].settings["tau"] == data.TAU == 0.05
        assert made.lr == stage.rate
        if name == "5":
            assert dict(made.terms[2].options) == {"topics": data.TOPICS, "dim": made.dim}
        assert made.batch_size <= data.BATCH


def test_every_stage_comes_after_what_it_starts_from_and_learns_from(ground):
    second = one(ground, "4", SYSTEMS["4"], seed=3)
    cells = compute.plans_of(ground, second)
    (plan,) = cells.values()
    first, middle, last = compute.rounds(ground, second, cells)
    pretrained = {each: ground.plan(Stage("pretrain", encoder=each), 3) for each in ENCODERS}
    assert {each.key for each in first} == {each.key for each in pretrained.values()}
    assert [each.key for each in middle] == [ground.plan(LAST, 3).key]
    assert [each.key for each in last] == [plan.key]
    assert plan.base == ground.plan(LAST, 3).path
    assert ground.plan(LAST, 3).base == pretrained["yamnet"].path
    assert plan.key == ground.plan(SYSTEMS["4"], 3).key, "an experiment's run is the ground's own"


def test_teachers_are_the_runs_of_the_seed(ground):
    def labels(name):
        return ground.teachers(name, 5)

    runs = {each: Run(ground.plan(Stage("pretrain", encoder=each), 5).key, ground.trunk(each)) for each in ENCODERS}
    assert labels("ensemble") == tuple(runs.values())
    assert labels("prediction") == (runs["prediction"],)
    assert labels("truth") == (Truth(),)
    assert isinstance(labels("blind")[0], Blind)
    assert len(labels("untrained")) == len(runs)
    assert labels("dealt") == (Dealt(labels("ensemble"), 5),)
    assert not set(labels("untrained")) & set(runs.values())


def test_features_do_not_depend_on_what_is_taught(ground):
    plain, soft = (ground.view_of(SYSTEMS[name]) for name in ("1, finetuned", "2"))
    assert plain.data.train.key == soft.taught(0).train.key
    assert plain.data.identity != soft.taught(0).identity != soft.taught(1).identity


def test_the_smaller_part_is_in_the_larger(ground):
    large = ground.source(Stage("pretrain")).train.columns["scene"]
    small = ground.source(Stage("finetune")).train.columns["scene"]
    assert len(small) <= len(large)
    assert list(large[: len(small)]) == list(small)


def test_a_system_goes_on_from_the_stage_before_and_follows_its_teachers(ground):
    """Soft labels change the weights; all start where the one before ended."""
    for name in ("1, finetuned", "2"):
        scores = compute.run(ground, one(ground, name, SYSTEMS[name]))
        assert {"mAP@16 multiple", "R@1 single"} <= set(scores.table.columns)
    runs = {name: ground.plan(SYSTEMS[name], 0).train().model for name in ("1", "1, finetuned", "2")}
    weights = {name: torch.cat([p.flatten() for p in model.parameters()]) for name, model in runs.items()}
    near = (weights["1, finetuned"] - weights["1"]).norm() / weights["1"].norm()
    assert 0 < near < 0.5, "a few small steps from where it began"
    assert not torch.equal(weights["2"], weights["1, finetuned"])


def test_galleries_hold_other_clips_and_each_is_retrieved_from_by_itself(ground):
    one = experiments.experiment(ground, "one", (0,), experiments.ROWS["systems"][:1])
    four = one.once_more("four", (0,), WIDE)
    alone, whole = (compute.compute(ground, each).values("1", "mAP@16 multiple")[0] for each in (one, four))
    galleries = ground.view(four.trials[0].test).tests
    assert [len(world.test) for world in galleries] == [len(alone)] * 4
    assert len({str(scene) for world in galleries for scene in world.test.columns["scene"]}) > 3 * len(alone)
    np.testing.assert_array_equal(whole[: len(alone)], alone)
    assert len(whole) == 4 * len(alone)


# The lesson's


def test_the_lesson_goes_on_from_its_first_stage_and_learns_from_all_three(lesson):
    (trial,) = (each for each in lesson.trials() if each.system == data.BOTH)
    cells = compute.plans_of(lesson, Experiment("one", (trial,), (0,), evaluations=("annotations",)))
    (plan,) = cells.values()
    assert plan.base == lesson.plan(Stage("pretrain"), 0).path
    first, second = compute.rounds(lesson, Experiment("one", (trial,), (0,)), cells)
    assert {each.key for each in first} == {lesson.plan(Stage("pretrain", encoder=each), 0).key for each in ENCODERS}
    assert second == [plan]
    assert set(plan.world.train.columns) >= {"teachers", "clusters"}


def test_the_lesson_s_systems_differ_in_one_thing_each(lesson):
    recipes = {trial.system: trial.recipe for trial in lesson.trials()}
    assert recipes == {
        data.FIRST: "infonce",
        data.CONTROL: "infonce",
        data.SMOOTHED: "infonce+label-smoothing",
        data.SOFT: "infonce+distillation",
        data.BOTH: "infonce+distillation+clusters",
    }
    control = next(trial for trial in lesson.trials() if trial.system == data.CONTROL)
    assert lesson.view(control.data).taught is None

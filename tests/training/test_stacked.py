"""Runs that are trained together: each ends where it ends alone."""

import pytest
import torch
from pandas.testing import assert_frame_equal
from torch.testing import assert_close

from pullpush.errors import TrainingError
from pullpush.training import Diagnostics, encoded, on_features, recipe
from pullpush.training.evaluate import embed
from pullpush.training.runs import Plan, train_run
from pullpush.training.stacked import groups, shape_of, train_stacked

SMALL = {"epochs": 2, "batch_size": 16, "dim": 16, "text": "hashed"}
SPOKEN = {"languages": ("eng", "fra", "jpn")}
SYSTEMS = {
    "infonce": {"captions": "random"},
    "infonce+bi-dynamic-svr": {},
    "siglip+bi-static-svr": {"optimiser": "adamw"},
    "siglip": {},
    "ml-clap": SPOKEN,
    "cacl": SPOKEN,
    "kcl": SPOKEN,
    "infonce+cyclic": {"loss_parts": 2},
}


@pytest.fixture(scope="module")
def fast(world):
    """A world on the features of a tiny trunk."""
    return encoded(
        world, Plan(world, recipe("infonce", **SMALL, encoder_options={"audio_channels": (8, 8, 16)})).train()
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_run_is_as_alone(fast, name):
    one = recipe(name, **SMALL, **SYSTEMS[name], **on_features(fast))
    plans = [Plan(fast, one, seed) for seed in (0, 3)]
    for plan, found in zip(plans, train_stacked(plans), strict=True):
        alone = train_run(fast, one, out=None, seed=plan.seed)
        assert plan.finished
        assert plan.seconds > 0
        assert found.best["epoch"] == alone.best["epoch"]
        assert_frame_equal(found.history, alone.history, rtol=1e-5, atol=1e-5)
        norms = ["gradient", *({"loss_gradient"} & {*alone.steps})]  # a radius's is a small sum of large parts
        assert_frame_equal(found.steps.drop(columns=norms), alone.steps.drop(columns=norms), rtol=1e-5, atol=1e-5)
        assert_frame_equal(found.steps[norms], alone.steps[norms], rtol=1e-4)
        for ours, theirs in zip(found.model.parameters(), alone.model.parameters(), strict=True):
            assert_close(ours, theirs, rtol=0, atol=1e-4)  # Adam takes the rounding of a gradient near 0 for one
            assert (ours - theirs).abs().mean() < 1e-6
        assert_close(*(embed(model, fast.test) for model in (found.model, alone.model)), rtol=0, atol=1e-5)


def test_data_and_languages_may_differ_within_a_stack(fast):
    systems = [recipe("infonce", **SMALL, **on_features(fast), languages=(spoken,)) for spoken in ("eng", "deu")]
    plans = [Plan(fast, one) for one in systems]
    for plan, found in zip(plans, train_stacked(plans), strict=True):
        alone = train_run(fast, plan.recipe, out=None)
        assert_frame_equal(found.history, alone.history, rtol=1e-5, atol=1e-5)


def test_a_stack_starts_from_bases_and_reads_what_is_there(fast):
    one = recipe("infonce", **SMALL, **on_features(fast))
    first = [Plan(fast, one, seed) for seed in (0, 1)]
    before = first[0].train()
    assert_frame_equal(train_stacked(first)[0].history, before.history)
    plans = [Plan(fast, one, seed, base=base.path) for seed, base in enumerate(first)]
    for plan, found in zip(plans, train_stacked(plans), strict=True):
        alone = train_run(fast, one, out=None, seed=plan.seed, base=plan.base)
        assert_frame_equal(found.history, alone.history, rtol=1e-5, atol=1e-5)
    other = recipe("infonce", **SMALL | {"text": "use"}, **on_features(fast))
    with pytest.raises(TrainingError, match="learnt from texts of 'hashed', this run from 'use'"):
        train_stacked([Plan(fast, other, seed, base=first[0].path) for seed in (0, 1)])


def test_runs_of_one_shape_are_grouped_and_others_go_alone(fast):
    one = recipe("infonce", **SMALL, **on_features(fast))
    plans = [Plan(fast, one, seed) for seed in range(3)]
    other = Plan(fast, recipe("siglip", **SMALL, **on_features(fast)))
    watched, whole = Plan(fast, one, diagnostics=Diagnostics()), Plan(fast, recipe("infonce", **SMALL))
    anneals = Plan(fast, recipe("infonce", **SMALL, **on_features(fast), tau_end=0.1))
    asks = Plan(fast, recipe("infonce+simcse", **SMALL, **on_features(fast)))
    assert shape_of(watched) is shape_of(whole) is shape_of(asks) is shape_of(anneals) is None
    assert list(groups([*plans, other, watched, whole], 2)) == [plans[:2]]
    with pytest.raises(TrainingError, match="one shape"):
        train_stacked([*plans, other])
    with pytest.raises(TrainingError, match="go alone"):
        train_stacked([watched])


def test_a_run_that_is_not_finite_is_named(fast):
    one = recipe("infonce", **SMALL, **on_features(fast), lr=1e30, clip=0.0)
    with pytest.raises(TrainingError, match=r"infonce, seed 0: .*step \d"):
        train_stacked([Plan(fast, one, seed) for seed in (0, 1)])


def test_numbers_of_the_caller_are_as_before(fast):
    one = recipe("infonce", **SMALL, **on_features(fast))
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    train_stacked([Plan(fast, one, seed) for seed in (0, 1)])
    assert torch.equal(torch.rand(1), expected)

"""End to end on the synthetic bank: world, encoders, recipe, run, evaluation."""

from dataclasses import replace
from shutil import copytree

import pandas as pd
import pytest
import torch
from pandas.testing import assert_frame_equal

from pullpush.cache import sums
from pullpush.data.batches import PairDataset
from pullpush.errors import TrainingError
from pullpush.losses import TERMS, Loss, LossCard, Output
from pullpush.training import Diagnostics, embed, recipe, runs
from pullpush.training.runs import Plan, train_all, train_run

SMALL = {
    "epochs": 2,
    "batch_size": 16,
    "dim": 16,
    "text": "hashed",
    "encoder_options": {"audio_channels": (8, 8, 16)},
}


@pytest.fixture
def no_training(monkeypatch):
    def refuse():
        monkeypatch.setattr(PairDataset, "batches", lambda *_, **__: pytest.fail("trained although the run was there"))

    return refuse


def test_a_run_is_trained_once_then_read(world, no_training, monkeypatch):
    first = Plan(world, recipe("infonce", **SMALL)).train()
    assert first.history["loss"].iloc[-1] < first.steps["loss"].iloc[:2].mean()
    no_training()
    monkeypatch.setattr("pullpush.training.loop.write_tables", lambda result: pytest.fail("its tables were there"))
    again = Plan(world, recipe("infonce", **SMALL)).train()
    assert_frame_equal(again.history, first.history, check_exact=True)
    assert_frame_equal(again.steps, first.steps, check_exact=True)
    torch.testing.assert_close(embed(first.model, world.test), embed(again.model, world.test), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["history.csv", "steps.csv", "seconds.json"])
def test_a_damaged_table_is_written_again_and_nothing_trained(world, no_training, name):
    plan = Plan(world, recipe("infonce", **SMALL))
    first = plan.train()
    held = (plan.path / name).read_bytes()
    (plan.path / name).write_text("7")
    sums._trusted.clear()
    no_training()
    again = Plan(world, recipe("infonce", **SMALL))
    assert again.finished == (name == "seconds.json")
    assert again.seconds == 0.0 or name != "seconds.json"
    train_all([again])
    assert_frame_equal(again.train().steps, first.steps, check_exact=True)
    assert name == "seconds.json" or (plan.path / name).read_bytes() == held


def test_runs_side_by_side_are_those_one_by_one(world):
    one = recipe("infonce", **{**SMALL, "epochs": 1})
    together = train_all([Plan(world, one, seed, Diagnostics(every=3)) for seed in (21, 22)], jobs=2)
    alone = train_run(world, one, out=None, seed=22, diagnostics=Diagnostics(every=3))
    pd.testing.assert_frame_equal(together[1].history, alone.history)
    assert together[0].history["loss"].item() != together[1].history["loss"].item()
    assert runs.reloaded(world.config, None) is runs.reloaded(world.config, None), "read once a process"


def test_everything_that_shapes_a_run_is_in_its_key(world, tmp_path):
    one = recipe("infonce", **SMALL)
    base = Plan(world, recipe("infonce", **SMALL)).train()
    with pytest.raises(TrainingError, match="learnt from texts of 'hashed', this run from 'use'"):
        Plan(world, recipe("infonce", **{**SMALL, "text": "use"}), base=base.path).train()
    runs.check_texts_of(tmp_path, one)  # where no recipe lies beside the weights
    elsewhere = [copytree(base.path, tmp_path / name / "mine") for name in "ab"]
    (elsewhere[0] / "best.safetensors").write_bytes(b"other weights")
    keys = [
        *(Plan(world, one, base=place).key for place in elsewhere),
        Plan(world, one).key,
        Plan(world, one, seed=1).key,
        Plan(world, recipe("infonce", **SMALL, tau=0.1)).key,
        Plan(world, one, base=base.path).key,
        Plan(world, one, diagnostics=Diagnostics()).key,
        Plan(replace(world, splits={**world.splits, "train": world.train.head(39)}), one).key,
        Plan(replace(world, words="in other words"), one).key,
    ]
    assert len(set(keys)) == len(keys)
    assert Plan(replace(world, config=None), one).key == keys[2], "what was configured is known by what came of it"
    assert keys[2] == Plan(world, recipe("infonce", **SMALL)).key


class Distance(Loss):
    """As a notebook's cell would have it."""

    scale = 1.0

    def forward(self, audio, text):
        return Output(self.scale * (audio - text).square().sum(dim=1).mean())


@pytest.fixture
def distance():
    yield TERMS.add(LossCard(name="of-a-cell", make=Distance, title="Distance", about="Squared distance."))
    TERMS._added.clear()


@pytest.mark.usefixtures("distance")
def test_a_loss_of_a_cell_is_told_apart_by_what_it_does(world, monkeypatch):
    def key():
        return Plan(world, recipe("of-a-cell", **SMALL)).key

    before = key()
    monkeypatch.setattr(Distance, "forward", lambda loss, audio, text: Output((audio - text).square().sum(1).mean()))
    assert key() == before, "in other words"
    monkeypatch.setattr(Distance, "scale", 1.001)
    assert key() == before, "the other words have no scale"
    monkeypatch.undo()
    monkeypatch.setattr(Distance, "scale", 1.001)
    assert key() != before


@pytest.mark.usefixtures("distance")
def test_a_loss_of_a_cell_trains_side_by_side(world):
    plans = [Plan(world, recipe("of-a-cell", **SMALL), seed) for seed in (0, 1)]
    results = train_all(plans, jobs=2)
    assert all(plan.finished for plan in plans)
    assert results[0].history["loss"].iloc[-1] < results[0].history["loss"].iloc[0]


def test_a_change_of_a_component_is_a_change_of_the_runs_that_go_through_it(world, monkeypatch):
    def keys():
        return [Plan(world, recipe(name, **SMALL)).key for name in ("infonce", "kcl")]

    before = keys()
    real = runs.versions

    def changed(*names):
        return real(*names) | dict.fromkeys({"losses/infonce"} & {*names}, "another")

    monkeypatch.setattr(runs, "versions", changed)
    infonce, kcl = keys()
    assert infonce != before[0]
    assert kcl == before[1]

"""Terms, grounds and columns of chapter 7."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pullpush.data.batches import PairDataset
from pullpush.data.clips import load_data
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import DataNotFoundError
from pullpush.lab import compute, session
from pullpush.losses import TERMS, Offer
from pullpush.losses.offer import apply
from pullpush.studies import taught
from pullpush.studies.together import cost, experiments, terms
from pullpush.studies.together.grounds import TEACHERS, Grounds
from pullpush.training import recipe

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def ground(tmp_path):
    return Grounds(session.start("07-together", "smoke", out=tmp_path), compute_long=True)


# Combinations of terms


def test_every_factor_changes_the_recipe():
    plain = terms.system((), dim=8)
    for name in terms.NAMES:
        assert terms.system({name}, dim=8) != plain


def test_a_run_has_the_terms_of_its_factors_and_no_others():
    name, overrides = terms.system({terms.SIGMOID, terms.SVR, terms.TOPICS}, dim=8)
    made = recipe(name, **overrides)
    assert [term.name for term in made.terms] == ["siglip-languages", "svr", "clusters"]
    assert made.terms[-1].weight == terms.HEADS
    assert (made.sampling, made.terms[-1].options["dim"]) == ("random", 8)


def test_what_was_searched_goes_to_its_loss():
    tuned = {"softmax": {"lr": 0.5, "tau": 0.2}, "sigmoid": {"lr": 0.1}}
    rates = {}
    for high in ((), (terms.SIGMOID,), (terms.SVR, terms.SIGMOID)):
        name, overrides = terms.system(high, dim=8, tuned=tuned)
        rates[high] = recipe(name, **overrides).lr
    assert list(rates.values()) == [0.5, 0.1, 0.1]


@pytest.mark.parametrize("languages", [1, 3])
def test_with_one_language_or_several_the_softmax_is_infonce_of_each(languages):
    loss, info = TERMS["kcl"].make(0.1), TERMS["infonce"].make(0.1)
    sides = torch.nn.functional.normalize(torch.randn(1 + languages, 6, 4, dtype=torch.float64), dim=-1)
    offer = Offer(sides[0], sides[1], tuple(sides[2:]))
    expected = torch.stack([info(sides[0], text).value for text in sides[1:]]).mean()
    torch.testing.assert_close(terms.SOFTMAX_LOSS.weight * apply(loss, offer).value, expected)


# Columns


def test_columns_come_with_the_clips_and_name_the_world(ground):
    data = ground.view("frozen").data
    held = data.train.columns
    assert held["teachers"].shape == (len(data.train), TEACHERS, 2, ground.dim)
    assert np.linalg.norm(held["teachers"].astype(np.float32), axis=-1) == pytest.approx(1, abs=2e-3)
    assert len(set(held["clusters"])) > 1
    assert max(held["clusters"]) < terms.ROOM
    assert data.identity != ground.view("plain").data.identity
    other = dict(data.config.columns) | {"clusters": taught.labels_column([0] * len(data.train))}
    assert replace(data.config, columns=tuple(other.items())).load().words != data.words
    again = load_data(data.config)
    assert np.array_equal(again.train.columns["teachers"], held["teachers"])


def test_batches_bring_what_teachers_make_of_their_clips(ground):
    train = ground.view("frozen").data.train
    data = PairDataset(train, columns=("teachers", "clusters"))
    batch = next(iter(data.batches(4, seed=0, epoch=0)))
    expected = train.columns["teachers"][batch.index.numpy()]
    assert np.array_equal(batch.columns["teachers"].numpy(), expected)


def test_a_column_that_is_not_there_says_what_makes_it():
    scenes = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
    with pytest.raises(DataNotFoundError, match="no column 'teachers'"):
        taught.TaughtConfig(scenes, (("teachers", "nowhere"),)).load()


def test_group_numbers_are_kept_by_content():
    assert taught.labels_column([0, 1]) == taught.labels_column(np.array([0, 1]))
    assert taught.labels_column([0, 1]) != taught.labels_column([1, 0])


# Experiments


def test_the_search_chooses_the_rate_that_is_best_in_both_companies(ground):
    search = experiments.search((1e-3, 3e-3), dim=ground.dim, seeds=(1000,))
    found = compute.run(ground, search)
    table = experiments.tried(found)
    assert len(table) == 4
    assert table["mean"].to_numpy() == pytest.approx((table["nothing"] + table["everything"]) / 2)
    best = experiments.chosen(found)
    assert set(best) == {"softmax", "sigmoid"}
    for loss, options in best.items():
        rows = table[table["system"] == loss]
        assert rows.loc[rows["mean"].idxmax(), "lr"] == options["lr"]


def test_a_factorial_has_every_run_once():
    of_all = experiments.combined("all", terms.half().runs, dim=8, tuned={}, seeds=(0, 1))
    assert len(of_all.trials) == 64
    assert len({str(trial) for trial in of_all.trials}) == 64


# Cost


def test_steps_are_counted_beside_the_baseline(ground):
    steps = cost.steps_of(ground.view("frozen"), [(), {terms.SVR}, {terms.ALL}])
    table = cost.step_costs(steps, rounds=3).set_index("system")
    assert table.loc["InfoNCE", ["time", "FLOPs ratio", "memory ratio"]].tolist() == [1, 1, 1]
    assert (table.loc[[terms.SVR, terms.ALL], ["FLOPs ratio", "memory ratio"]] > 1).all(axis=None)
    assert table.loc[terms.ALL, "FLOPs"] > table.loc[terms.SVR, "FLOPs"]

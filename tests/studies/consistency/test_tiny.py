"""The model that is small enough for the bound."""

from __future__ import annotations

import pytest
import torch

from pullpush.studies.consistency import tiny as study
from pullpush.studies.consistency.schemes import SAMPLINGS


def test_the_tiny_model_is_on_the_sphere(tiny):
    audio, texts = tiny(tiny.start(0), torch.arange(5))
    assert audio.shape == (5, 3)
    assert texts.shape == (5, 8, 3)
    assert torch.allclose(texts.norm(dim=-1), torch.ones(5, 8, dtype=torch.float64))
    assert not torch.equal(tiny.start(0), tiny.start(1))


def test_the_bound_holds_and_kcl_has_no_error(tiny):
    table = study.bound_table(tiny, [0], epochs=2, batch_size=4)
    assert set(table["sampling"]) == set(SAMPLINGS)
    assert (table["left"] <= table["right"] + 1e-12).all()
    assert table.query("sampling == 'all'")[["left", "right", "distribution_error"]].to_numpy().max() == 0
    adam = study.bound_table(tiny, [0], epochs=2, batch_size=4, adam=True, rate=0.01)
    assert study.violated(adam).tolist() == study.violated(table).tolist() == [[0.0]]
    assert study.at_end(table, "pair", "distribution_error") == pytest.approx(2 * (1 - 2 / 8))


def test_a_slope_known_beforehand_is_that_of_another_seed(tiny):
    size = {"epochs": 2, "batch_size": 4}
    table = study.bound_table(tiny, [0, 1], **size)
    predicted = study.predicted_bound(tiny, table, **size)
    assert predicted["left"].to_numpy() == pytest.approx(table.sort_values("seed", kind="stable")["left"].to_numpy())
    slope = (table.query("seed == 1")["growth"].max() - 1) / study.RATE
    assert predicted.query("seed == 0")["growth"].to_numpy() == pytest.approx(1 + study.RATE * slope)


def test_as_printed_nothing_moves(tiny):
    assert study.printed_gradient(tiny, 0, clips=8) < 1e-12


def test_the_whole_of_cacl_errs_otherwise_than_its_sampling_and_keeps_the_bound(tiny):
    size = {"epochs": 2, "batch_size": 4}
    alone, whole = (study.bound_table(tiny, [0], english_other=each, **size) for each in (False, True))
    assert study.at_end(whole, "pair") != pytest.approx(study.at_end(alone, "pair"))
    assert study.at_end(whole, "random") == pytest.approx(study.at_end(alone, "random"))
    assert study.violated(whole).tolist() == [[0.0]]

"""SimCSE against the sum as printed, and as a term: its own temperature, a second pass that differs row by row."""

import math

import pytest
import torch
from embeddings import sphere

from pullpush.losses import simcse
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe, recipe
from pullpush.training.terms import Term, one_temperature


def test_value_as_printed_divided_by_the_batch():
    first, second = sphere(5, 4, seed=1), sphere(5, 4, seed=2)
    printed = 0.0
    for j in range(5):
        scores = [math.exp(float(first[j] @ second[k]) / 0.05) for k in range(5)]
        printed -= math.log(scores[j] / sum(scores))
    assert float(simcse(first, second)) == pytest.approx(printed / 5)


def test_equal_views_leave_uniformity():
    texts = sphere(6, 8, seed=3)
    loss = simcse(texts, texts, tau=0.5)
    expected = (texts @ texts.T / 0.5).logsumexp(dim=1).mean() - 1 / 0.5
    torch.testing.assert_close(loss, expected)
    assert float(simcse(texts[:1], texts[:1])) == 0


@pytest.mark.parametrize(("name", "shared"), [("infonce+simcse", 0.3), ("simcse+infonce", 0.3)])
def test_temperature_of_the_contrast_is_not_its_own(name, shared):
    one = recipe(name, tau=shared)
    options = {term.name: term.options for term in one.terms}
    assert options == {"infonce": {"tau": shared}, "simcse": {}}
    objective = Objective(torch.nn.Identity(), one)
    taus = {type(term).__name__: term.tau for term in objective.terms}
    assert taus == {"InfoNCE": shared, "SimCSE": 0.05}
    assert objective.tau == pytest.approx(shared)


def test_a_temperature_that_it_is_given_stays():
    terms = (Term("infonce", options={"tau": 0.2}), Term("simcse", options={"tau": 0.2}))
    assert one_temperature(terms) == terms
    assert one_temperature((Term("infonce"), Term("simcse", options={"tau": 0.05})))[1].options == {}


def test_two_passes_differ_row_by_row_while_training_and_not_after():
    from pullpush.encoders import create

    model = create("cnn", "transformer", dim=8, audio_channels=(4, 4, 8), text_dropout=0.1)
    texts = ["a frog croaks"] * 3 + ["a bell rings"]
    rows = model.train().encode_text(texts)
    assert not torch.equal(rows[0], rows[1]), "a mask a row, not a mask a batch"
    assert not torch.equal(rows, model.encode_text(texts))
    still = model.eval().encode_text(texts)
    assert torch.equal(still[0], still[1])
    assert torch.equal(still, model.encode_text(texts))


def test_a_recipe_may_be_simcse_alone():
    alone = recipe("simcse")
    assert isinstance(alone, Recipe)
    assert alone.columns == ()

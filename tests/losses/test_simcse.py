"""SimCSE against the sum as printed, and as a term: its own temperature, a second pass that differs row by row."""

import math

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.losses import SimCSE, simcse
from pullpush.training.objective import Objective
from pullpush.training.recipes import recipe


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


# --- texts that come more than once in a batch


def by_loops(first, second, names, tau):
    """Without the other rows of the same text among the candidates."""
    total = 0.0
    for j in range(len(first)):
        rows = [k for k in range(len(first)) if k == j or names[k] != names[j]]
        scores = {k: math.exp(float(first[j] @ second[k]) / tau) for k in rows}
        total -= math.log(scores[j] / sum(scores.values()))
    return total / len(first)


@settings(max_examples=25, deadline=None)
@given(names=st.lists(st.integers(0, 3), min_size=1, max_size=7), seed=st.integers(0, 100))
def test_equal_texts_are_no_negatives_where_they_are_masked(names, seed):
    first, second = sphere(2, len(names), 4, seed=seed)
    numbers = torch.tensor(names)
    found = simcse(first, second, 0.3, text_ids=numbers)
    assert float(found) == pytest.approx(by_loops(first, second, names, 0.3), abs=1e-12)
    assert SimCSE(0.3, duplicates="mask")(first, second, numbers).value == found
    assert SimCSE(0.3)(first, second, numbers).value == simcse(first, second, 0.3), "as published"


def test_what_duplicates_cannot_be():
    with pytest.raises(ValueError, match=r"duplicates must be one of \('keep', 'mask'\), got 'drop'"):
        SimCSE(duplicates="drop")
    with pytest.raises(ValueError, match='duplicates="mask" takes text_ids'):
        SimCSE(duplicates="mask")(torch.eye(3), torch.eye(3))
    with pytest.raises(TypeError, match="text_ids must be int64"):
        simcse(torch.eye(3), torch.eye(3), text_ids=torch.zeros(3))


# --- in a step of training


def offered(dropout, texts=None, **options):
    """What a step on eight clips, of six captions, gives the term, and the term's value."""
    one = recipe("infonce+simcse-0.1", dim=8, batch_size=8, **options)
    clips = TinyClips(8)
    batch = collate([PairDataset(clips)[row] for row in range(8)])
    batch.texts[:] = texts or batch.texts
    objective = Objective(TinyModel(dropout=dropout), one)
    outcome = objective.train()(batch)
    return outcome.offer, outcome.terms[1], outcome.loss - outcome.terms[0]


def test_each_row_of_the_second_pass_has_its_own_dropout():
    offer, value, weighted = offered(0.5)
    assert (offer.text != offer.second_text).any(dim=1).all()
    assert (offer.second_text[0] != offer.second_text[6]).any(), "one caption, two draws"
    torch.testing.assert_close(weighted, 0.1 * value)
    torch.testing.assert_close(value, simcse(offer.text, offer.second_text))


def test_a_clip_without_a_caption_is_left_out():
    offer, value, _ = offered(0.0, ["a bell rings", "", *["a dog barks"] * 6], duplicates="mask")
    rows = [0, 2, 3, 4, 5, 6, 7]
    text = offer.text[rows]
    torch.testing.assert_close(value, simcse(text, text, text_ids=torch.tensor([0, *[1] * 6])))

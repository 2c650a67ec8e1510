"""NLI against the sum as printed and an implementation that others train with; batches of one and of equals."""

import math

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st
from torch import nn

from pullpush.losses import nli, simcse
from pullpush.training.objective import Objective
from pullpush.training.recipes import recipe, title

SIZES = {"n": st.integers(1, 6), "d": st.integers(1, 5), "seed": st.integers(0, 1000)}


def triples(n=5, d=6, seed=0):
    """Premises, entailments and contradictions, `(n, d)` each, float64."""
    return tuple(sphere(n, d, seed=seed + number) for number in range(3))


def by_loops(anchor, entailment, contradiction, tau):
    """The sum as printed, triple by triple, divided by the batch."""
    total = 0.0
    for j in range(len(anchor)):
        weight = [math.exp(float(anchor[j] @ entailment[k]) / tau) for k in range(len(anchor))]
        against = [math.exp(float(anchor[j] @ contradiction[k]) / tau) for k in range(len(anchor))]
        total -= math.log(weight[j] / (sum(weight) + sum(against)))
    return total / len(anchor)


@settings(max_examples=25, deadline=None)
@given(**SIZES, tau=st.sampled_from([0.05, 0.3, 2.0]))
def test_value_as_printed_divided_by_the_batch(n, d, seed, tau):
    batch = triples(n, d, seed)
    assert float(nli(*batch, tau)) == pytest.approx(by_loops(*batch, tau), abs=1e-12)


def test_contradictions_far_away_leave_simcse_of_premise_and_entailment():
    anchor, entailment = (torch.cat([x, torch.zeros(5, 1)], dim=1) for x in triples()[:2])
    away = torch.zeros(5, 7, dtype=torch.float64)
    away[:, -1] = 1
    anchor = anchor - 100 * away  # then no contradiction is near to any premise
    torch.testing.assert_close(nli(anchor, entailment, away, 0.5), simcse(anchor, entailment, 0.5))


def test_a_contradiction_pushes_its_premise_away_and_an_entailment_pulls():
    anchor, entailment, contradiction = (x.requires_grad_() for x in triples(1))
    nli(anchor, entailment, contradiction, 0.5).backward()
    step = {name: float(-x.grad @ anchor.detach().T) for name, x in (("e", entailment), ("c", contradiction))}
    assert step["c"] < 0 < step["e"]
    assert (-anchor.grad @ entailment.detach().T).item() > (-anchor.grad @ contradiction.detach().T).item()


def test_equal_sentences_are_negatives_of_each_other():
    same = sphere(1, 4).expand(5, 4)
    assert float(nli(same, same, same)) == pytest.approx(math.log(10)), "nothing tells the ten candidates apart"


def test_value_and_gradient_are_those_of_sentence_transformers():
    library = pytest.importorskip("sentence_transformers")

    class Given(nn.Module):
        """Embeddings that are there already."""

        def forward(self, features):
            return features

    losses = getattr(library, "sentence_transformer", library).losses
    theirs = losses.MultipleNegativesRankingLoss(Given(), scale=20.0)
    ours_at, theirs_at = ([x.clone().requires_grad_() for x in triples(7, 5)] for _ in range(2))
    expected = theirs([{"sentence_embedding": x} for x in theirs_at], None)
    found = nli(*ours_at, tau=1 / 20)
    torch.testing.assert_close(found, expected)
    for one, other, point in zip(
        torch.autograd.grad(found, ours_at), torch.autograd.grad(expected, theirs_at), triples(7, 5), strict=True
    ):  # it normalises what it is given, so that its gradient is along the sphere
        torch.testing.assert_close(one - (one * point).sum(1, keepdim=True) * point, other)


def test_temperature_is_its_own():
    objective = Objective(nn.Identity(), recipe("infonce+nli+sentence-simcse", tau=0.3))
    assert {type(term).__name__: term.tau for term in objective.terms} == {
        "InfoNCE": 0.3,
        "NLI": 0.05,
        "SentenceSimCSE": 0.05,
    }


def test_a_clip_brings_its_sentences_in_columns():
    assert recipe("infonce+nli").columns == ("premise", "entailment", "contradiction")
    assert recipe("infonce+sentence-simcse").columns == ("premise",)


def test_recipes_have_the_weights_of_the_paper():
    one = recipe("infonce-learnable+cyclic+simcse-0.1+nli-0.1+sentence-simcse-0.1")
    assert {term.name: term.weight for term in one.terms} == {
        "infonce": 1.0,
        "cross-cyclic": 0.25,
        "in-modal-cyclic": 0.25,
        "simcse": 0.1,
        "nli": 0.1,
        "sentence-simcse": 0.1,
    }
    assert all(term.settings["per_clip"] for term in one.terms if "cyclic" in term.name)
    assert title("infonce-learnable+cyclic+nli-0.1") == "InfoNCE, learnable τ + cyclic terms + NLI"

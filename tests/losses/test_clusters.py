"""Topics as an auxiliary task: cross-entropies by loops, clips without a topic, and what is refused."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from loss_ranks import clips
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.errors import TrainingError
from pullpush.losses import ClusterHeads, clusters
from pullpush.training import Term, recipe
from pullpush.training.objective import Objective, bring_columns


def logits(n, topics, seed=0):
    """Two `(n, topics)`."""
    return torch.randn(2, n, topics, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).unbind()


@settings(max_examples=25, deadline=None)
@given(labels=st.lists(st.integers(-1, 3), min_size=1, max_size=8), seed=st.integers(0, 100))
def test_value_is_that_of_loops(labels, seed):
    both, total, count = logits(len(labels), 4, seed), 0.0, 0
    for row, label in enumerate(labels):
        if label == -1:
            continue
        count += 1
        for side in both:
            odds = [math.exp(float(x)) for x in side[row]]
            total -= math.log(odds[label] / sum(odds))
    assert float(clusters(*both, torch.tensor(labels))) == pytest.approx(total / max(1, count), abs=1e-10)


def test_without_any_topic_it_is_zero_with_a_gradient_of_zero():
    heads = ClusterHeads(topics=4, dim=3)
    sides = [torch.randn(5, 3, requires_grad=True) for _ in range(2)]
    value, report = heads(*sides, torch.full((5,), -1))
    value.backward()
    assert value.item() == 0
    assert {name: float(number) for name, number in report.items()} == {
        "topic of audio": 0.0,
        "topic of text": 0.0,
        "clips with a topic": 0.0,
    }
    for tensor in (*sides, *heads.parameters()):
        assert tensor.grad is not None
        assert not tensor.grad.any()


def test_a_clip_without_a_topic_has_no_gradient_of_its_own():
    both = [side.requires_grad_() for side in logits(4, 3)]
    clusters(*both, torch.tensor([0, -1, 2, 1])).backward()
    for side in both:
        assert not side.grad[1].any()
        assert side.grad[[0, 2, 3]].any(dim=1).all()


def test_heads_are_as_printed_and_learn_their_topics():
    """Linear to three times the width, ReLU, linear to the topics, on each side."""
    torch.manual_seed(0)
    heads = ClusterHeads(topics=3, dim=4)
    for head in (heads.audio, heads.text):
        assert [type(layer).__name__ for layer in head] == ["Linear", "ReLU", "Linear"]
        assert [tuple(layer.weight.shape) for layer in head if hasattr(layer, "weight")] == [(12, 4), (3, 12)]
    assert heads.audio[0].weight.data_ptr() != heads.text[0].weight.data_ptr()
    sides, labels = torch.nn.functional.normalize(torch.randn(2, 9, 4), dim=2), torch.arange(9) % 3
    optimiser = torch.optim.Adam(heads.parameters(), lr=0.02)
    first = heads(*sides, labels)
    for _ in range(200):
        optimiser.zero_grad()
        heads(*sides, labels).value.backward()
        optimiser.step()
    value, report = heads(*sides, labels)
    assert value < 0.1 * first.value
    assert report["topic of audio"] == report["topic of text"] == report["clips with a topic"] == 1


def test_what_cannot_be_is_refused():
    good = torch.zeros(3, 2)
    with pytest.raises(ValueError, match=r"clusters must be 0 … 1 for 2 topics, or -1 for none, got 0 … 2: give the h"):
        clusters(good, good, torch.tensor([0, 2, 1]))
    with pytest.raises(ValueError, match="got -2 … 1"):
        clusters(good, good, torch.tensor([0, -2, 1]))
    with pytest.raises(TypeError, match="clusters must be int64"):
        clusters(good, good, torch.zeros(3))
    with pytest.raises(ValueError, match="topics must be at least 2, got 1: one topic has nothing to tell apart"):
        ClusterHeads(topics=1, dim=4)
    with pytest.raises(ValueError, match=r'heads of dim=4 got embeddings of 6 dimensions: .*"clusters.dim": 6'):
        ClusterHeads(topics=2, dim=4)(torch.zeros(3, 6), torch.zeros(3, 6), torch.tensor([0, 1, 1]))


# --- in a recipe


def test_a_step_with_all_three_losses_of_the_paper():
    one = recipe("infonce+distillation+clusters", tau=0.05, topics=3, dim=8, batch_size=6, **{"clusters.dim": 8})
    weighted = [
        Term("infonce", options={"tau": 0.05}),
        Term("distillation"),
        Term("clusters", 0.05, one.terms[2].options),
    ]
    assert set(one.columns) == {"teachers", "clusters"}
    one = recipe("infonce+distillation+clusters", terms=tuple(weighted), dim=8, batch_size=6)
    dataset = PairDataset(clips(6), columns=one.columns)
    objective = Objective(TinyModel(dropout=0), one)
    outcome = objective(collate([dataset[row] for row in range(6)]))
    supervised, soft, topics = outcome.terms
    torch.testing.assert_close(outcome.loss, supervised + soft + 0.05 * topics)
    assert outcome.offer.clusters.tolist() == [0, 1, 2, 0, 1, 2]
    outcome.loss.backward()
    assert all(parameter.grad is not None for parameter in objective.terms[2].parameters())


def test_clips_without_clusters_are_refused_before_training():
    one = recipe("infonce+clusters", topics=3, **{"clusters.dim": 8})
    with pytest.raises(TrainingError, match=r"term 'clusters' needs clusters .* give them a column 'clusters'"):
        bring_columns(PairDataset(TinyClips(4)), one)

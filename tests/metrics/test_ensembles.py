"""Ensembles against plain loops, planted optima, and the weights that the paper prints."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from pullpush.errors import UnknownNameError
from pullpush.lab.paper import paper_table
from pullpush.metrics import retrieval
from pullpush.metrics.ensembles import by_number, combine, landscape, learned, score, simplex, two_stages

QUERIES, ITEMS = 60, 60


def noisy(levels, seed=0):
    """Similarities of members that see the truth through noise of so much, `(members, Q, N)`, and the relevance."""
    random = torch.Generator().manual_seed(seed)
    truth = torch.eye(QUERIES, ITEMS)
    noise = torch.randn(len(levels), QUERIES, ITEMS, generator=random)
    return truth + torch.tensor(levels)[:, None, None] * noise, truth.bool()


# Sums


def test_a_weighted_sum_is_that_of_plain_loops():
    members, _ = noisy([0.3, 0.5, 0.7])
    weights = [0.2, 0.5, 0.3]
    expected = torch.zeros(QUERIES, ITEMS)
    for weight, member in zip(weights, members, strict=True):
        for row in range(QUERIES):
            expected[row] += weight * member[row]
    torch.testing.assert_close(combine(members, weights), expected)


@pytest.mark.parametrize(("members", "step"), [(1, 0.5), (2, 0.05), (3, 0.1), (4, 0.25)])
def test_the_grid_holds_every_point_of_the_simplex_once(members, step):
    parts = round(1 / step)
    expected = {point for point in product(range(parts + 1), repeat=members) if sum(point) == parts}
    points = (simplex(members, step) * parts).round().int().tolist()
    assert {tuple(point) for point in points} == expected
    assert len(points) == len(expected) == math.comb(parts + members - 1, members - 1)


def test_the_landscape_is_the_metric_at_every_point():
    members, relevance = noisy([0.3, 0.6])
    found = landscape(members, relevance, step=0.25, objective="mAP@10")
    for point, value in zip(found.points, found.scores, strict=True):
        expected = retrieval(point[0] * members[0] + point[1] * members[1], relevance, map_at=(10,))["mAP@10"]
        assert value == pytest.approx(expected, abs=1e-6)


# Searches


def test_the_weights_of_a_planted_optimum_are_found():
    # Each member is right on its half of the queries and silent on the other: half and half is the only optimum.
    truth = torch.eye(8)
    halves = torch.stack([truth, truth])
    halves[0, 4:], halves[1, :4] = 0, 0
    halves[0, 0, 1] = halves[1, 7, 6] = 1.5  # each errs once, and the other has to outvote it
    halves[1, 0, 0] = halves[0, 7, 7] = 1.0
    found = landscape(halves, truth.bool(), step=0.1, objective="R@1")
    assert found.points[found.best()].tolist() == [0.5, 0.5]
    assert found.scores.max() == 1
    assert learned(halves, truth.bool()).tolist() == pytest.approx([0.5, 0.5], abs=1e-3)


def test_learned_weights_are_those_of_a_plain_descent():
    members, relevance = noisy([0.3, 0.5, 0.9])
    logits, sharpness = torch.zeros(3, requires_grad=True), torch.zeros((), requires_grad=True)
    descent = torch.optim.Adam([logits, sharpness], lr=0.05)
    for _ in range(600):
        weights = logits.softmax(dim=0)
        combined = torch.einsum("m,mqn->qn", weights, members) * sharpness.exp()
        loss = -combined.log_softmax(dim=1).diagonal().mean()
        descent.zero_grad()
        loss.backward()
        descent.step()
    assert learned(members, relevance).tolist() == pytest.approx(logits.softmax(dim=0).tolist(), abs=5e-3)


def test_of_equal_scores_the_most_even_weights_are_taken():
    same = torch.eye(5).repeat(2, 1, 1)
    found = landscape(same, torch.eye(5).bool(), step=0.25)
    assert found.points[found.best()].tolist() == [0.5, 0.5]
    assert sorted(found.points[found.best(2)].tolist()) == [0.25, 0.75]
    assert found.flat(0.0) == 1
    with pytest.raises(ValueError, match="no place 6"):
        found.best(6)


def _best(found):
    return found.points[found.best()]


# Two stages


@pytest.mark.parametrize("first", ["systems", "models"])
def test_two_stages_are_two_searches(first):
    members, relevance = noisy([0.3 + 0.1 * (system + 2 * model) for system in range(2) for model in range(3)], 0)
    members = members.view(2, 3, QUERIES, ITEMS)
    found = two_stages(members, relevance, first=first, step=0.25)
    groups = members.unbind(1) if first == "systems" else members.unbind(0)
    shares = [_best(landscape(group, relevance, step=0.25)) for group in groups]
    sums = torch.stack([combine(group, share) for group, share in zip(groups, shares, strict=True)])
    between = _best(landscape(sums, relevance, step=0.25))
    expected = torch.stack([share * weight for share, weight in zip(shares, between, strict=True)])
    torch.testing.assert_close(found.weights, expected.T if first == "systems" else expected)
    assert found.weights.sum() == pytest.approx(1)
    assert found.within.sum(dim=0 if first == "systems" else 1).tolist() == pytest.approx([1] * len(groups))
    whole = combine(members.flatten(0, 1), found.weights.flatten())
    assert score(whole, relevance) == pytest.approx(found.score, abs=1e-6)


@pytest.mark.parametrize(
    ("ensembles", "group", "other"), [(("E1", "E2"), "model", "sid"), (("E3", "E4"), "sid", "model")]
)
def test_the_paper_s_weights_come_apart_into_two_stages_on_a_grid(ensembles, group, other):
    """Within a model (E1, E2) or a system (E3, E4) they are the same multiples of 0.05 in both; the rest differs."""
    table = paper_table("distill_cluster", 3)
    table[["sid", "model"]] = table["note"].str.extract(r"sid=(\d);audio_model=(\w+)")
    inner, outer = {}, {}
    for name in ensembles:
        weights = table[table["system"] == name].pivot_table(index=group, columns=other, values="value")
        outer[name] = weights.sum(axis=1).to_numpy()
        inner[name] = weights.to_numpy() / outer[name][:, None]
        for values in (outer[name], inner[name]):
            assert np.abs(values * 20 - np.round(values * 20)).max() < 1e-6
        assert outer[name].sum() == pytest.approx(1)
    first, second = ensembles
    assert inner[first] == pytest.approx(inner[second])
    assert np.abs(outer[first] - outer[second]).max() > 0.04


# The number of members


def test_of_many_subsets_some_are_drawn_the_same_each_time():
    members, relevance = noisy([0.5] * 8)
    found = by_number(members, relevance, [4], most=10)[4]
    assert len(found) == 10
    assert torch.equal(found, by_number(members, relevance, [4], most=10)[4])


# What cannot be


def test_wrong_input_is_named():
    members, relevance = noisy([0.3, 0.5])
    with pytest.raises(ValueError, match=r"a weight a member: got \(2, 60, 60\) and \(3,\)"):
        combine(members, [1, 1, 1])
    for weights in ([0, 0], [1, -1], [float("nan"), 1]):
        with pytest.raises(ValueError, match="0 or more, and not all 0"):
            combine(members, weights)
    with pytest.raises(ValueError, match="divides 1"):
        simplex(2, 0.3)
    with pytest.raises(ValueError, match="no subset of 3"):
        by_number(members, relevance, [3])
    with pytest.raises(ValueError, match=r"\(systems, models, Q, N\)"):
        two_stages(members, relevance)
    with pytest.raises(UnknownNameError, match="mAP@16"):
        landscape(members, relevance, objective="nDCG@10")
    with pytest.raises(UnknownNameError, match="models"):
        two_stages(members[None], relevance, first="encoders")
    with pytest.raises(ValueError, match="no relevant item"):
        learned(members, torch.zeros(QUERIES, ITEMS, dtype=torch.bool))

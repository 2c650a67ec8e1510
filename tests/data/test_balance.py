"""Balanced sampling: proportions in every batch, even passes over every group, and nothing but (seed, epoch)."""

from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st

from pullpush.data.batches import PairDataset, balanced_order, shares
from pullpush.errors import PullPushError

SIZES = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 30), min_size=1)
WEIGHTS = st.lists(st.sampled_from([0.0, 1.0, 2.5, 10.0]), min_size=5, max_size=5)


class Grouped:
    """Clips of groups, one caption each."""

    def __init__(self, groups):
        self.columns = {} if groups is None else {"group": groups}
        self.count = 6 if groups is None else len(groups)

    def __len__(self):
        return self.count

    def audio(self, index, *, sample_rate=None):
        count = 1 if isinstance(index, int) else len(index)
        return torch.ones(count, 3), torch.full((count,), 3)

    def captions(self, language):
        return [[f"{language} {number}"] for number in range(self.count)]


def drawn(sizes, weights, epoch, seed=0):
    """The groups' names of the clips in their order, and the numbers of the clips."""
    groups = [name for name, size in sizes.items() for _ in range(size)]
    order = balanced_order(*shares(groups, weights), seed=seed, epoch=epoch)
    return [groups[row] for row in order], order


def balanced(sizes, weights):
    """Weights of all groups, one of them more than 0."""
    weights = dict(zip(sizes, weights, strict=False))
    return weights if any(weights.values()) else dict.fromkeys(sizes, 1.0)


@given(SIZES, WEIGHTS, st.integers(0, 5))
def test_any_run_of_clips_holds_the_groups_in_proportion(sizes, weights, epoch):
    weights = balanced(sizes, weights)
    count = sum(sizes.values())
    try:
        names, _ = drawn(sizes, weights, epoch)
    except PullPushError:  # a group whose share is less than one clip
        assert min(filter(None, weights.values())) * count / sum(weights.values()) < 1
        return
    assert len(names) == count
    for name in sizes:
        share = names.count(name)
        assert abs(share - count * weights[name] / sum(weights.values())) < 1
        for start in range(count):
            for size in (4, 7):
                window = names[start : start + size]
                assert abs(window.count(name) - len(window) * share / count) <= 1 + share * len(sizes) / count + 1e-9


@given(SIZES, WEIGHTS, st.integers(1, 7))
def test_clips_of_a_group_come_equally_often_over_epochs(sizes, weights, epochs):
    weights = balanced(sizes, weights)
    try:
        seen = Counter(row for epoch in range(epochs) for row in drawn(sizes, weights, epoch)[1])
    except PullPushError:
        return
    start = 0
    for name, size in sizes.items():
        times = [seen[row] for row in range(start, start + size)]
        assert max(times) - min(times) <= 1
        assert (max(times) > 0) == (weights[name] > 0)
        start += size


def test_batches_of_pairs_are_balanced_and_resume():
    dataset = PairDataset(Grouped(["rare"] * 4 + ["common"] * 36), weights={"common": 3, "rare": 1})
    batches = [batch.index.tolist() for batch in dataset.batches(8, seed=1, epoch=2)]
    assert [sum(row < 4 for row in rows) for rows in batches] == [2] * 5
    assert len(dataset) == 40
    assert dataset.steps(8) == 5
    rest = [batch.index.tolist() for batch in dataset.batches(8, seed=1, epoch=2, skip=3)]
    assert rest == batches[3:]
    halves = [
        [batch.index.tolist() for batch in dataset.batches(8, seed=1, epoch=2, rank=rank, processes=2)]
        for rank in (0, 1)
    ]
    assert [one + other for one, other in zip(*halves, strict=True)] == batches
    assert all(sum(row < 4 for row in rows) == 1 for half in halves for rows in half), "each process has its share"


@pytest.mark.parametrize(
    ("groups", "weights", "message"),
    [
        (None, {"a": 1}, "need clips with a column 'group'; these have: none"),
        (["a", "b"], {"a": 1, "b": 1, "c": 1}, r"empty group 'c': it has a weight and no clip; .* a \(1\), b \(1\)"),
        (["a", "b"], {"a": 1}, "no weight for group 'b': give it one, 0 to leave its clips out"),
        (["a", "b"], {"a": 1, "b": 0.001}, "gives it no clip of 2: enlarge it"),
        (["a", "b"], {"a": 1, "b": -1}, "0 or more"),
        (["a", "b"], {"a": 1, "b": float("nan")}, "finite"),
        (["a", "b"], {"a": 0, "b": 0}, "one of them is more than 0"),
    ],
)
def test_mistakes_say_what_to_do(groups, weights, message):
    with pytest.raises((PullPushError, ValueError), match=message):
        PairDataset(Grouped(groups), weights=weights)


def test_a_weight_of_zero_leaves_a_group_out():
    dataset = PairDataset(Grouped(["a", "a", "b", "b"]), weights={"a": 1, "b": 0})
    (batch,) = dataset.batches(4, seed=0, epoch=0)
    assert sorted(batch.index.tolist()) == [0, 0, 1, 1]

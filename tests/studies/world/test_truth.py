"""Tests of what scene graphs say, on relevance whose answer can be counted by hand."""

from __future__ import annotations

import pytest
import torch

from pullpush.studies.world import truth

RELEVANCE = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 1.0], [0.0, 1.0, 1.0]])


def test_only_pairs_of_different_clips_count():
    assert sorted(truth.off_diagonal(RELEVANCE).tolist()) == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]


def test_false_negatives_are_counted_by_clip_and_by_batch():
    table = truth.false_negatives(RELEVANCE, RELEVANCE, batch_size=2)
    partly, fully, batches = table["share"]
    assert partly == pytest.approx(4 / 6)
    assert fully == pytest.approx(2 / 6)
    assert batches == pytest.approx(2 / 6)  # a batch of two is one pair
    assert truth.false_negatives(RELEVANCE, RELEVANCE, 3)["share"].iloc[2] == pytest.approx(1 - (4 / 6) ** 3)


def test_the_first_clip_is_graded_by_the_scene_graph():
    similarity = torch.tensor([[0.1, 0.9, 0.0], [0.2, 0.1, 0.3], [0.9, 0.2, 0.1]])
    assert truth.first_grades(similarity, RELEVANCE).tolist() == [0.5, 1.0, 0.0]
    table = truth.graded(similarity, RELEVANCE).set_index("what")["value"]
    assert table["R@1 where every clip that fits fully is right"] == pytest.approx(1 / 3)
    assert table["mean relevance of the clip that comes first"] == pytest.approx(0.5)
    assert table["mean relevance of a random clip"] == pytest.approx(6 / 9)


def test_confusions_are_counted_by_pair_and_the_most_frequent_comes_first():
    label = torch.tensor([0, 0, 0, 1, 2])
    predicted = torch.tensor([1, 1, 0, 2, 2])
    table = truth.confusions(predicted, label, ["dog", "cow", "bell"])
    assert table.to_dict("records") == [
        {"heard": "dog", "named": "cow", "clips": 2},
        {"heard": "cow", "named": "bell", "clips": 1},
    ]


def test_a_model_that_confuses_nothing_gives_no_rows():
    label = torch.tensor([0, 1])
    assert truth.confusions(label, label, ["dog", "cow"]).empty

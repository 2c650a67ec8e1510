"""What scenes say of labels and topics: what a caption fits, labels against it, pushes, forces, agreement."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

from pullpush import losses
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.errors import SettingError
from pullpush.studies.distill import truth
from pullpush.studies.distill.teachers import Truth

N = 8


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    return tuple(F.normalize(torch.randn(N, 5, dtype=torch.float64, generator=generator), dim=1) for _ in range(2))


@pytest.fixture(scope="module")
def clips(home):
    return load_world(WorldConfig("synthetic", n_train=24, n_valid=2, n_test=8, n_single_per_event=1)).train


def test_fitting_clips_are_those_with_the_same_events(clips):
    scenes = clips.columns["scene"]
    expected = [sum(sorted(a.events) == sorted(b.events) for b in scenes) for a in scenes]
    assert truth.fitting(clips).tolist() == expected


def test_two_clips_with_one_caption_are_found():
    assert truth.twins(["a fox", "rain", "rain", "a fox"]) == (1, 2)
    with pytest.raises(SettingError, match="no two clips"):
        truth.twins(["a fox", "rain"])


def test_rank_correlations_are_scipy_s():
    rng = np.random.default_rng(0)
    labels, relevance = rng.random((4, 9)), rng.choice([0, 0.25, 0.75, 1], (4, 9))
    relevance[:, 0], relevance[:, 1] = 1, 0
    expected = [spearmanr(*rows).statistic for rows in zip(labels, relevance, strict=True)]
    assert truth.against_truth(torch.from_numpy(labels), torch.from_numpy(relevance)) == pytest.approx(expected)
    assert truth.against_truth(torch.ones(4, 9), torch.from_numpy(relevance)).tolist() == [0] * 4


def test_teachers_that_know_the_truth_are_nearer_to_it_than_binary_labels(clips):
    table = truth.correctness({"truth": [[Truth()], [Truth()]]}, clips).set_index(["teacher", "metric"])
    known, binary = table.loc[("truth", "rank correlation")], table.loc[("binary labels", "rank correlation")]
    assert known["value"] == pytest.approx(1, abs=1e-3)
    assert binary["value"] < 0.9
    assert (known["seeds"], binary["seeds"], binary["clips"]) == (2, 1, len(clips))
    assert table.loc[("truth", "share on clips that fit"), "value"] > 0.9


def test_smoothed_labels_have_the_entropy_of_soft_ones(pairs):
    audio, text = pairs
    soft = (text @ audio.T / 0.3).softmax(dim=1)
    label = truth.smoothed(soft)
    entropies = [torch.special.entr(each).sum(dim=1) for each in (label, soft)]
    torch.testing.assert_close(*entropies, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(label.sum(dim=1), torch.ones(N).double())
    off = label[0, 1:]
    assert off.max() == pytest.approx(off.min())


def test_weights_on_a_text_are_the_gradient_s(pairs):
    audio, text = pairs
    relevance = torch.eye(N)
    table = truth.push_by_truth(text @ audio.T, text @ audio.T, relevance, 0.5, size=N).set_index("label")
    q = (text @ audio.T / 0.5).softmax(dim=1)
    off = ~torch.eye(N, dtype=torch.bool)
    assert table.loc["binary", "weight"] == pytest.approx(float(q[off].mean()))
    assert table.loc["soft", "weight"] == pytest.approx(0, abs=1e-12)  # the student is its own teacher
    assert table.loc["binary and soft", "weight"] == pytest.approx(float(q[off].mean()))
    assert table.loc["binary", "pairs"] == N * (N - 1)


def test_a_binary_label_only_pushes_and_the_truth_pulls_what_fits(pairs):
    audio, text = pairs
    relevance = torch.eye(N)
    relevance[0, 1] = relevance[1, 0] = 1.0
    table = truth.push_by_truth(text @ audio.T, relevance, relevance, 0.1, size=N).set_index(["label", "level"])
    same = "the same scene"
    assert (table.loc["binary", "weight"] > 0).all()
    assert table.loc[("soft", same), "weight"] < 0 < table.loc[("binary", same), "weight"]
    assert table.loc[("smoothed", same), "pairs"] == 2
    both = table.loc["binary", "weight"] + table.loc["soft", "weight"]
    assert np.allclose(table.loc["binary and soft", "weight"], both[table.loc["binary and soft"].index])


def test_forces_are_those_of_the_decomposition(pairs):
    audio, text = pairs
    towards = {"nearer": lambda a, t: -(a * t).sum(dim=1).mean(), "contrast": lambda a, t: losses.info_nce(a, t, 0.2)}
    table = truth.force_parts(towards, audio, text, torch.arange(N) // 2).set_index("term")
    sines = (1 - (audio * text).sum(dim=1) ** 2).sqrt().mean()
    assert table.loc["nearer", "along"] == pytest.approx(float(sines))
    assert table.loc["nearer", "across"] == pytest.approx(0, abs=1e-9)
    assert table.loc["contrast", "across"] > 0


def test_a_force_that_all_of_a_topic_share_is_alike(pairs):
    audio, _ = pairs
    topics = torch.arange(N) // 4
    direction = torch.eye(5, dtype=torch.float64)[topics]
    same = F.normalize(direction.roll(1, dims=1), dim=1)  # at one place, pulled to one place
    table = truth.force_parts({"shared": lambda a, t: -(t * same).sum(dim=1).mean()}, audio, direction, topics)
    assert table["alike"][0] == pytest.approx(1)


def test_fitted_heads_name_the_topics(pairs):
    audio, text = (side.float() for side in pairs)
    topics = torch.arange(N) % 2
    heads = truth.fitted_heads(losses.ClusterHeads(2, 5), audio, text, topics)
    assert heads(audio, text, topics).report["topic of text"] == 1


# Topics


def test_a_partition_agrees_with_itself_and_clips_without_a_class_do_not_count():
    topics = np.arange(12) % 3
    classes = {"same": topics, "of some": ["", *(f"kind {topic}" for topic in topics[1:])]}
    table = truth.agreements({"found": topics, "one": np.zeros(12, int)}, classes).set_index(["topics", "classes"])
    assert table.loc["found", "AMI"].tolist() == pytest.approx([1, 1])
    assert table.loc["one", "AMI"].tolist() == pytest.approx([0, 0])


def test_each_different_caption_has_one_place_and_the_topic_of_its_first():
    near = np.eye(4).repeat(25, axis=0) + np.random.default_rng(0).normal(0, 0.02, (100, 4))
    texts = [f"caption {min(row, 97)}" for row in range(100)]
    points, topics = truth.plane(near.astype(np.float32), texts, np.arange(100), umap=False)
    assert points.shape == (98, 2)
    assert topics.tolist() == list(range(98))


def test_topics_that_audio_follows_agree_with_its_groups():
    topics = np.arange(60) % 3
    drawn = [torch.randn(60, 3, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    near = torch.eye(3)[torch.from_numpy(topics)] + 0.01 * drawn[0]
    assert truth.groups_agree(near, topics) > 0.95
    assert abs(truth.groups_agree(drawn[1], topics)) < 0.2
    unknown = np.where(np.arange(60) < 30, -1, topics)
    assert truth.groups_agree(near, unknown) > 0.95

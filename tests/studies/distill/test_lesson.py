"""What lesson 6 computes: clips that a caption fits, labels against the truth, pushes, forces of heads."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

from pullpush import losses
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.lab import compute, session
from pullpush.lab.experiments import Experiment
from pullpush.rewriting import create
from pullpush.show.layout import PAGE_WIDTH
from pullpush.studies.distill import lesson, lesson_figures, lesson_forces, lesson_words
from pullpush.studies.distill.lesson_ground import AGAIN, BOTH, CONTROL, FIRST, SOFT, LessonGround

N = 8


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    return tuple(F.normalize(torch.randn(N, 5, dtype=torch.float64, generator=generator), dim=1) for _ in range(2))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(tmp_path_factory.mktemp("home")))
        yield tmp_path_factory


@pytest.fixture(scope="module")
def clips(home):
    return load_world(WorldConfig("synthetic", n_train=24, n_valid=2, n_test=8, n_single_per_event=1)).train


@pytest.fixture(scope="module")
def ground(home):
    return LessonGround(session.start("06-distill-cluster", profile="smoke", out=home.mktemp("out")))


# Captions and clips


def test_fitting_clips_are_those_with_the_same_events(clips):
    scenes = clips.columns["scene"]
    expected = [sum(sorted(a.events) == sorted(b.events) for b in scenes) - 1 for a in scenes]
    assert lesson.others_that_fit(clips).tolist() == expected


def test_what_a_batch_gets_wrong_is_what_all_batches_get_wrong():
    fits = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]])
    for size in (2, 3, 4, 5):
        touched, wrong = [], []
        for row in range(5):
            others = [other for other in range(5) if other != row]
            counts = [fits[row, list(drawn)].sum() for drawn in combinations(others, size - 1)]
            touched.append(np.mean(np.array(counts) > 0))
            wrong.append(np.mean(counts))
        found = lesson.wrong_by_batch(torch.from_numpy(fits.sum(axis=1)), [size]).iloc[0]
        assert found["touched"] == pytest.approx(np.mean(touched))
        assert found["wrong"] == pytest.approx(np.mean(wrong))
    with pytest.raises(ValueError, match="a batch of 6 cannot be drawn from 5"):
        lesson.wrong_by_batch(torch.ones(5), [6])


def test_two_clips_with_one_caption_are_found():
    told = SimpleNamespace(captions=lambda language: [["a fox"], ["rain"], ["a fox", "fox"]])
    assert lesson.told_alike(told) == (0, 2)
    with pytest.raises(ValueError, match="no two clips"):
        lesson.told_alike(SimpleNamespace(captions=lambda language: [["a fox"], ["rain"]]))


# Labels


def test_rank_correlations_are_scipy_s():
    rng = np.random.default_rng(0)
    labels, truth = rng.random((4, 9)), rng.choice([0, 0.25, 0.75, 1], (4, 9))
    truth[:, 0], truth[:, 1] = 1, 0
    expected = [spearmanr(*rows).statistic for rows in zip(labels, truth, strict=True)]
    assert lesson.against_truth(torch.from_numpy(labels), torch.from_numpy(truth)) == pytest.approx(expected)
    assert lesson.against_truth(torch.ones(4, 9), torch.from_numpy(truth)).tolist() == [0] * 4


def test_teachers_that_know_the_truth_are_nearer_to_it_than_binary_labels(clips):
    truth = clips.relevance()
    soft, binary = lesson.label_quality([truth, truth], truth)
    assert soft.shape == binary.shape == (2, len(clips))
    assert soft == pytest.approx(1)
    assert (binary < 1).all()


def test_a_cold_teacher_is_binary_and_a_hot_one_says_nothing(pairs):
    audio, _ = pairs
    table = lesson.softness(audio @ audio.T, torch.eye(N), [1e-3, 1e6])
    assert table["candidates"].tolist() == pytest.approx([1, N])
    assert table["own"].tolist() == pytest.approx([1, 1 / N], rel=1e-4)
    assert (table["right"] == table["own"]).all()


def test_smoothed_labels_have_the_entropy_of_soft_ones(pairs):
    audio, text = pairs
    soft = (text @ audio.T / 0.3).softmax(dim=1)
    label = lesson.smoothed(soft)
    entropies = [torch.special.entr(each).sum(dim=1) for each in (label, soft)]
    torch.testing.assert_close(*entropies, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(label.sum(dim=1), torch.ones(N).double())
    off = label[0, 1:]
    assert off.max() == pytest.approx(off.min())


def test_weights_on_a_text_are_the_gradient_s(pairs):
    audio, text = pairs
    relevance = torch.eye(N)
    table = lesson.push_by_truth(text @ audio.T, text @ audio.T, relevance, 0.5, size=N).set_index("label")
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
    table = lesson.push_by_truth(text @ audio.T, relevance, relevance, 0.1, size=N).set_index(["label", "level"])
    same = "the same scene"
    assert (table.loc["binary", "weight"] > 0).all()
    assert table.loc[("soft", same), "weight"] < 0 < table.loc[("binary", same), "weight"]
    assert table.loc[("smoothed", same), "pairs"] == 2
    both = table.loc["binary", "weight"] + table.loc["soft", "weight"]
    assert np.allclose(table.loc["binary and soft", "weight"], both[table.loc["binary and soft"].index])


# Forces


def test_forces_are_those_of_the_decomposition(pairs):
    audio, text = pairs
    towards = {"nearer": lambda a, t: -(a * t).sum(dim=1).mean(), "contrast": lambda a, t: losses.info_nce(a, t, 0.2)}
    table = lesson_forces.force_parts(towards, audio, text, torch.arange(N) // 2).set_index("term")
    sines = (1 - (audio * text).sum(dim=1) ** 2).sqrt().mean()
    assert table.loc["nearer", "along"] == pytest.approx(float(sines))
    assert table.loc["nearer", "across"] == pytest.approx(0, abs=1e-9)
    assert table.loc["contrast", "across"] > 0


def test_a_force_that_all_of_a_topic_share_is_alike(pairs):
    audio, _ = pairs
    topics = torch.arange(N) // 4
    direction = torch.eye(5, dtype=torch.float64)[topics]
    same = F.normalize(direction.roll(1, dims=1), dim=1)  # at one place, pulled to one place
    table = lesson_forces.force_parts({"shared": lambda a, t: -(t * same).sum(dim=1).mean()}, audio, direction, topics)
    assert table["alike"][0] == pytest.approx(1)


def test_fitted_heads_name_the_topics(pairs):
    audio, text = (side.float() for side in pairs)
    topics = torch.arange(N) % 2
    heads = lesson_forces.fitted_heads(losses.ClusterHeads(2, 5), audio, text, topics)
    assert heads(audio, text, topics).report["topic of text"] == 1


# Words, mixtures, topics


def test_a_caption_is_nearer_to_itself_than_to_another():
    one_hot = {"a fox": [1, 0], "rain": [0, 1]}
    found = lesson_words.meaning_kept(
        lambda texts: np.float32([one_hot[text] for text in texts]), ["a fox", "rain"], ["a fox", "rain"]
    )
    assert found.tolist() == [1, 1]


def test_two_clips_and_their_mixture_come_with_their_captions(clips, ground):
    merger = create("grammar").of(clips, "eng", ground.world.bank.events)
    (one, first), (other, second), (both, words) = lesson_words.mixture(clips, merger, seed=0)
    assert len(both) == max(len(one), len(other))
    assert first in [texts[0] for texts in clips.captions("eng")]
    assert words not in (first, second)
    told = lesson_words.ways_and_back(merger, [first])
    assert told.columns.tolist() == ["caption", "language", "there", "and back"]
    assert told["caption"].tolist() == [first]
    assert told["and back"][0] != first


def test_kinds_are_those_of_the_scenes(clips, ground):
    events = ground.world.bank.events
    kinds = lesson.kinds_of(clips, events)
    for row, scene in enumerate(clips.columns["scene"]):
        assert (kinds["event, of single sounds"][row] == "") == (len(scene.events) > 1)
    table = lesson.agreements(np.unique(kinds["categories"], return_inverse=True)[1], kinds)
    assert table["AMI"][1] == pytest.approx(1)


# The ground


def test_the_second_stage_starts_from_the_first_and_learns_from_all_three(ground):
    trials = {trial.system: trial for trial in ground.trials()}
    experiment = Experiment("small", (trials[SOFT],), (0,), evaluations=("annotations",))
    (plan,) = compute.plans_of(ground, experiment).values()
    assert plan.base == ground.pretrained("yamnet", 0).path
    assert [run.key for run in ground.teachers(0)] == [
        ground.pretrained(ears, 0).key for ears in ("yamnet", "reconstruction", "prediction")
    ]
    first, second = compute.rounds(ground, experiment, {(trials[SOFT], 0): plan})
    assert len(first) == 3
    assert second == [plan]
    assert set(plan.world.train.columns) >= {"teachers", "clusters"}
    assert ground.view(AGAIN).taught is None


def test_systems_differ_in_one_thing_each(ground):
    terms = {name: [term.name for term in overrides["terms"]] for name, (_, overrides) in ground.systems().items()}
    assert terms[CONTROL] == ["infonce"]
    assert terms[SOFT] == ["infonce", "distillation"]
    assert terms[BOTH] == ["infonce", "distillation", "clusters"]
    assert FIRST not in terms
    with pytest.raises(Exception, match="pretrained/yamnet"):
        ground.view("pretrained/yamnett")


# Figures


def test_figures_fit_the_page():
    counts = pd.DataFrame({"clips": ["training clips"] * 3 + ["test clips"] * 2, "others": [0, 2, 99, 0, 1]})
    batches = lesson.wrong_by_batch(torch.tensor([0, 1, 1]), [2, 3])
    pushes = pd.DataFrame(
        [(name, level, 0.1, 5) for name in lesson_figures.LABELS for level in lesson.LEVELS],
        columns=["label", "level", "weight", "pairs"],
    )
    gains = pd.DataFrame(
        [(system, "R@1", 0.01, 0.0, 0.02) for system in ("a", "b")],
        columns=["system", "metric", "value", "low", "high"],
    )
    taus = lesson.softness(torch.eye(4), torch.eye(4), [0.01, 0.1, 1.0])
    points = np.random.default_rng(0).random((9, 2)).astype(np.float32)
    drawn = [
        lesson_figures.fitting(counts, batches, trained=2),
        lesson_figures.label_matrices({"binary": torch.eye(3), "soft": torch.eye(3)}),
        lesson_figures.temperatures(taus, paper=0.05),
        lesson_figures.pushes(pushes),
        lesson_figures.topic_map(points, np.arange(9) % 4 - 1, ["dog", "rain", "bell"]),
        lesson_figures.gains(gains, {"R@1": "recall"}),
    ]
    assert all(fig.get_figwidth() == PAGE_WIDTH for fig in drawn)
    assert len(drawn[4].axes[0].collections) == 4  # three topics, and the rest in grey

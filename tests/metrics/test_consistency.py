"""Consistency across languages against loops."""

import math

import numpy as np
import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st

from pullpush.metrics import (
    angle,
    direction_error,
    distance,
    gap,
    language_ranks,
    mean_rank_variance,
    rank_variance,
)


def norm(values):
    return math.sqrt(sum(value * value for value in values))


# Gap and distance


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), k=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_gap_and_distance_equal_the_loops(n, k, seed):
    english, other = sphere(n, 4, seed=seed), sphere(n, k, 4, seed=seed + 1)
    gaps, distances = [], []
    for language in range(k):
        differences = [[float(english[i, c] - other[i, language, c]) for c in range(4)] for i in range(n)]
        gaps.append(norm([sum(column) / n for column in zip(*differences, strict=True)]))  # Eq. 14
        distances.append(sum(norm(row) for row in differences) / n)  # Eq. 15
    assert gap(english, other).tolist() == pytest.approx(gaps)
    assert distance(english, other).tolist() == pytest.approx(distances)
    assert (gap(english, other) <= distance(english, other) + 1e-12).all()


def test_one_language_gives_a_number():
    english, other = sphere(5, 4), sphere(5, 3, 4, seed=1)
    for measure in (gap, distance):
        many = measure(english, other)
        assert many.shape == (3,)
        assert torch.allclose(measure(english, other[:, 1]), many[1])
        assert measure(english, english) == 0


# Ranks


def loop_rank(scores, right, rivals):
    return 1 + sum(scores[j] >= scores[right] for j in rivals)


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 5), per_clip=st.integers(1, 3), k=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_language_ranks_equal_the_loop(m, per_clip, k, seed):
    # Small whole numbers tie often, and exactly.
    generator = torch.Generator().manual_seed(seed)
    audio = torch.randint(-1, 2, (m, 3), generator=generator).double()
    texts = torch.randint(-1, 2, (m * per_clip, k, 3), generator=generator).double()
    clip = torch.arange(m).repeat(per_clip)
    t2a = language_ranks(audio, texts, clip=clip)
    a2t = language_ranks(audio, texts, clip=clip, direction="a2t")
    for i, c in enumerate(clip.tolist()):
        for language in range(k):
            by_clip = [float(texts[i, language] @ audio[j]) for j in range(m)]
            assert t2a[i, language] == loop_rank(by_clip, c, [j for j in range(m) if j != c])
            by_text = [float(texts[j, language] @ audio[c]) for j in range(len(texts))]
            assert a2t[i, language] == loop_rank(by_text, i, [j for j in range(len(texts)) if clip[j] != c])


def test_ranks_agree_with_those_of_retrieval():
    audio, texts = sphere(7, 5), sphere(7, 2, 5, seed=1)
    for language in range(2):
        similarity = texts[:, language] @ audio.T
        for direction, scores in (("t2a", similarity), ("a2t", similarity.T)):
            found = language_ranks(audio, texts, direction=direction)[:, language]
            assert torch.equal(found, (scores >= scores.diagonal()[:, None]).sum(dim=1))


def test_a_model_without_opinion_ranks_last_in_all_languages():
    same = torch.ones(4, 3, 2)
    assert language_ranks(same[:, 0], same).eq(4).all()
    assert mean_rank_variance(language_ranks(same[:, 0], same)) == 0


def test_mean_rank_variance_of_a_case_by_hand():
    # Item 1: mean 2, deviations 1, 0, 1; item 2: mean 4, deviations 3, 3, 0.
    assert rank_variance(torch.tensor([[1, 2, 3], [1, 7, 4]])).tolist() == pytest.approx([2 / 3, 6])
    assert mean_rank_variance(torch.tensor([[1, 2, 3], [1, 7, 4]])).item() == pytest.approx(10 / 3)


def test_rank_variance_of_the_cases_of_table_5():
    ml_clap_ranks = torch.tensor([[5, 4, 5, 2, 4, 5, 8, 13], [2, 4, 4, 7, 12, 12, 0, 3]])
    expected = np.var(ml_clap_ranks.numpy(), axis=1)
    assert rank_variance(ml_clap_ranks).tolist() == pytest.approx(expected.tolist())
    assert rank_variance(ml_clap_ranks + 1).tolist() == pytest.approx(expected.tolist())  # counted from 0 or from 1


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), k=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_rank_variance_equals_the_loop_and_knows_no_order(n, k, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(1, 30, (n, k), generator=generator)
    expected = [np.var(values[i].tolist()) for i in range(n)]
    assert rank_variance(values).tolist() == pytest.approx(expected)
    assert mean_rank_variance(values).item() == pytest.approx(float(np.mean(expected)))
    items, languages = torch.randperm(n, generator=generator), torch.randperm(k, generator=generator)
    assert torch.allclose(mean_rank_variance(values[items][:, languages]), mean_rank_variance(values))


def test_ranks_that_cannot_be_are_named():
    with pytest.raises(ValueError, match=r"shape \(N, K\)"):
        rank_variance(torch.ones(2))
    with pytest.raises(ValueError, match="which clip each belongs to"):
        language_ranks(torch.ones(2, 3), torch.ones(4, 2, 3))
    with pytest.raises(ValueError, match="NaN"):
        language_ranks(torch.full((2, 3), math.nan), torch.ones(2, 2, 3))
    with pytest.raises(ValueError, match="direction"):
        language_ranks(torch.ones(2, 3), torch.ones(2, 2, 3), direction="t2t")


# Direction error


def test_angles_in_the_plane():
    turn = torch.tensor([0.0, 1e-6, 30, 90, 180]).double()
    ray = torch.stack([torch.cos(turn.deg2rad()), torch.sin(turn.deg2rad())], dim=1)
    assert angle(ray, 3 * ray[:1].expand_as(ray)).tolist() == pytest.approx(turn.tolist(), rel=1e-6)
    assert angle(torch.zeros(2), ray[0].float()).isnan()


def test_direction_error_is_the_angle_of_figure_2():
    audio = torch.zeros(1, 2)
    texts = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # the mean lies at 45° from both
    for taken, expected in (([[True, False]], 45), ([[False, True]], 45), ([[True, True]], 0)):
        assert direction_error(audio, texts, torch.tensor(taken)).item() == pytest.approx(expected, abs=1e-5)

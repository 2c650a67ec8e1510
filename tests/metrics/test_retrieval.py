"""Retrieval metrics against torchmetrics, scikit-learn and hand-made cases."""

import numpy as np
import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st
from sklearn.metrics import average_precision_score, ndcg_score
from torchmetrics.functional.retrieval import retrieval_hit_rate

from pullpush.metrics import (
    by_caption,
    by_clip,
    caption_relevance,
    retrieval,
    retrieval_per_query,
    scored,
    zero_shot_predictions,
)
from pullpush.metrics._retrieval import scores_by_chance


def problem(queries, items, seed):
    """Distinct similarities and boolean relevance with at least one relevant item a query."""
    rng = np.random.default_rng(seed)
    similarity = torch.from_numpy(rng.permuted(np.tile(np.linspace(0.1, 1, items), (queries, 1)), axis=1))
    relevance = torch.from_numpy(rng.random((queries, items)) < 0.3)
    relevance[torch.arange(queries), torch.from_numpy(rng.integers(0, items, queries))] = True
    return similarity, relevance


@settings(max_examples=30, deadline=None)
@given(queries=st.integers(1, 8), items=st.integers(1, 20), seed=st.integers(0, 10_000))
def test_equals_torchmetrics_and_scikit_learn(queries, items, seed):
    similarity, relevance = problem(queries, items, seed)
    values = retrieval_per_query(similarity, relevance, ks=(1, 5), map_at=(items,))
    for q in range(queries):
        for k in (1, 5):
            hit = retrieval_hit_rate(similarity[q], relevance[q], top_k=min(k, items))
            assert values[f"R@{k}"][q] == hit
        expected = average_precision_score(relevance[q].numpy(), similarity[q].numpy())
        assert values[f"mAP@{items}"][q].item() == pytest.approx(expected)


@settings(max_examples=20, deadline=None)
@given(queries=st.integers(1, 6), items=st.integers(2, 15), seed=st.integers(0, 10_000))
def test_graded_relevance_equals_scikit_learn_s_ndcg(queries, items, seed):
    similarity, _ = problem(queries, items, seed)
    gains = torch.from_numpy(np.random.default_rng(seed).choice([0, 0.25, 0.5], (queries, items)))
    gains[:, 0] = 1.0
    values = retrieval(similarity, gains, ks=(1,), map_at=(10,))
    assert values["nDCG@10"] == pytest.approx(ndcg_score(gains.numpy(), similarity.numpy(), k=10))


def test_five_captions_a_clip_share_the_precision():
    # relevant captions at ranks 1, 3 and beyond 10: (1/1 + 2/3) / 5
    relevance = torch.zeros(1, 20, dtype=torch.bool)
    relevance[0, [0, 2, 12, 13, 14]] = True
    values = retrieval(torch.linspace(1, 0, 20)[None], relevance, map_at=(10,))
    assert values["mAP@10"] == pytest.approx((1 + 2 / 3) / 5)


def test_a_constant_model_does_not_score():
    similarity = torch.zeros(4, 4)
    assert retrieval(similarity, torch.eye(4, dtype=torch.bool), ks=(1, 3))["R@3"] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_near_similarities_do_not_tie_in_half_precision(dtype):
    noise = torch.randn(2, 200, 32, generator=torch.Generator().manual_seed(0))
    audio, text = torch.nn.functional.normalize(1 + 0.2 * noise[0] + 0.02 * noise, dim=-1).to(dtype)
    exact, rows = by_clip(audio.float(), text.float()), torch.arange(200)
    assert 0.8 < exact["T2A R@1"].mean() <= 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for found in (by_clip(audio, text), by_caption(audio, text, rows)):
            assert all(torch.equal(values, exact[name]) for name, values in found.items())
        assert torch.equal(zero_shot_predictions(audio, text), zero_shot_predictions(audio.float(), text.float()))


def test_where_an_embedding_is_not_finite_is_said_before_rows_are_normalised():
    broken = torch.eye(5).index_put_((torch.tensor(3), torch.tensor(2)), torch.tensor(float("nan")))
    with pytest.raises(ValueError, match=r"audio has 1 value that is NaN or infinite, the first at \[3, 2\]"):
        scored(broken.numpy(), torch.eye(5))
    with pytest.raises(TypeError, match=r"text must be a floating-point tensor, got torch\.complex64"):
        scored(torch.eye(5), torch.eye(5, dtype=torch.complex64))


def test_both_directions_of_a_perfect_model():
    audio = torch.eye(3)
    text = audio[:, None].expand(3, 5, 3)
    assert all((values == 1).all() for values in by_clip(audio, text).values())
    assert caption_relevance(3, 5).sum(0).tolist() == [5, 5, 5]


def test_relevance_that_is_a_cosine_may_be_rounded():
    texts = sphere(50, 64, seed=0)
    assert retrieval(texts @ texts.T, (texts @ texts.T).clamp(0).float())["R@1"] == 1
    one = torch.nextafter(torch.ones(()), torch.zeros(()))
    assert retrieval(torch.tensor([[0.9, 0.1]]), torch.stack([one, torch.ones(())])[None], (1,), ())["R@1"] == 1


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"queries \[1\] have no relevant item"):
        retrieval(torch.zeros(2, 2), torch.tensor([[True, False], [False, False]]))
    with pytest.raises(ValueError, match=r"have no relevant item \(of 1 or more: see `threshold`\) \(2 in all\)"):
        retrieval(torch.zeros(2, 2), torch.eye(2) / 2)
    with pytest.raises(ValueError, match=r"NaN for queries \[0\]"):
        retrieval(torch.tensor([[float("nan"), 0.0]]), torch.tensor([[True, False]]))
    with pytest.raises(ValueError, match="one shape"):
        retrieval(torch.zeros(2, 3), torch.zeros(3, 2))


@settings(max_examples=20, deadline=None)
@given(clips=st.integers(2, 30), captions=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_score_of_a_clip_is_that_of_its_ranks(clips, captions, seed):
    audio, text = sphere(clips, 5, seed=seed), sphere(clips, captions, 5, seed=seed + 100)
    ours, similarity = by_clip(audio, text), (text.flatten(0, 1) @ audio.T).numpy()
    owner = np.repeat(np.arange(clips), captions)
    for clip in range(clips):
        ranks = [1 + np.sum(similarity[row] > similarity[row, clip]) for row in np.flatnonzero(owner == clip)]
        assert ours["T2A R@5"][clip] == pytest.approx(np.mean([rank <= 5 for rank in ranks]))
        assert ours["T2A mAP@10"][clip] == pytest.approx(np.mean([1 / rank if rank <= 10 else 0 for rank in ranks]))
        found = owner[np.argsort(-similarity[:, clip])] == clip
        assert ours["A2T R@1"][clip] == found[0]
        precisions = [found[: place + 1].mean() for place in np.flatnonzero(found[:10])]
        assert ours["A2T mAP@10"][clip] == pytest.approx(sum(precisions) / min(10, captions))


# Clips that differ in their number of captions


def test_with_equal_numbers_of_captions_it_is_by_clip():
    audio, text = sphere(15, 6, seed=0), sphere(15, 3, 6, seed=1)
    ragged = by_caption(audio, text.flatten(0, 1), torch.arange(15).repeat_interleave(3))
    for name, values in by_clip(audio, text).items():
        torch.testing.assert_close(ragged[name], values)


def test_each_clip_counts_alike_and_captions_may_come_in_any_order():
    audio = sphere(4, 6, seed=0)
    clip = torch.tensor([0, 0, 0, 1, 2, 3, 3])
    text = audio[clip].clone()
    text[1] = audio[3]  # one of three captions of clip 0 asks for clip 3
    values = by_caption(audio, text, clip, ks=(1,), map_at=(10,))
    assert values["T2A R@1"].tolist() == pytest.approx([2 / 3, 1, 1, 1])
    assert values["A2T R@1"].tolist() == [1, 1, 1, 0], "clip 3 finds the stranger first"
    assert values["A2T mAP@10"][3] == pytest.approx((1 / 2 + 2 / 3) / 2)
    order = torch.tensor([4, 6, 1, 0, 5, 2, 3])
    for name, shuffled in by_caption(audio, text[order], clip[order], ks=(1,), map_at=(10,)).items():
        torch.testing.assert_close(shuffled, values[name])


def test_chance_is_what_random_orders_score():
    captions = [1, 2, 5, 4]
    clip = torch.arange(4).repeat_interleave(torch.tensor(captions))
    draws = [
        by_caption(sphere(4, 6, seed=s), sphere(12, 6, seed=s + 9000), clip, ks=(1, 5), map_at=(10,))
        for s in range(200)
    ]
    for name, expected in scores_by_chance(captions, ks=(1, 5), map_at=(10,)).items():
        assert torch.stack([draw[name] for draw in draws]).mean().item() == pytest.approx(expected, abs=0.06)
    assert scores_by_chance([5, 5, 5])["A2T R@1"] == pytest.approx(5 / 15)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"clip \(M,\)"):
        by_caption(sphere(3, 6, seed=0), sphere(4, 6, seed=1), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="no relevant item"):
        by_caption(sphere(3, 6, seed=0), sphere(2, 6, seed=1), torch.tensor([0, 1]))

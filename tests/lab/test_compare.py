"""Systems trained, scored and compared: on scores whose answer is known and on a tiny world."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from miniature import BOTH, SMALL
from torch.nn import functional as F

from pullpush.lab import compare
from pullpush.lab.compare import Scores, Trial
from pullpush.training.recipes import recipe

# Scores


@settings(max_examples=20, deadline=None)
@given(clips=st.integers(2, 30), captions=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_score_of_a_clip_is_that_of_its_ranks(clips, captions, seed):
    generator = torch.Generator().manual_seed(seed)
    audio = F.normalize(torch.randn(clips, 5, generator=generator, dtype=torch.float64), dim=-1)
    text = F.normalize(torch.randn(clips, captions, 5, generator=generator, dtype=torch.float64), dim=-1)
    ours, similarity = compare.per_clip(audio, text), (text.flatten(0, 1) @ audio.T).numpy()
    owner = np.repeat(np.arange(clips), captions)
    for clip in range(clips):
        ranks = [1 + np.sum(similarity[row] > similarity[row, clip]) for row in np.flatnonzero(owner == clip)]
        assert ours["T2A R@5"][clip] == pytest.approx(np.mean([rank <= 5 for rank in ranks]))
        assert ours["T2A mAP@10"][clip] == pytest.approx(np.mean([1 / rank if rank <= 10 else 0 for rank in ranks]))
        found = owner[np.argsort(-similarity[:, clip])] == clip
        assert ours["A2T R@1"][clip] == found[0]
        precisions = [found[: place + 1].mean() for place in np.flatnonzero(found[:10])]
        assert ours["A2T mAP@10"][clip] == pytest.approx(sum(precisions) / min(10, captions))


def scored() -> Scores:
    """Two systems and two seeds; "b" finds every second clip more than "a"."""
    clips = {}
    for seed in (0, 1):
        clips["a", seed] = {"T2A R@1": torch.zeros(10), "A2T R@1": torch.ones(10)}
        clips["b", seed] = {"T2A R@1": torch.arange(10) % 2.0, "A2T R@1": torch.ones(10)}
    rows = [
        {"system": name, "seed": seed, **{metric: float(v.mean()) for metric, v in own.items()}}
        for (name, seed), own in clips.items()
    ]
    return Scores(pd.DataFrame(rows), clips)


def test_a_gain_is_the_difference_with_its_interval():
    table = compare.gains(scored(), [("b", "a")], [0, 1]).set_index("metric")
    row = table.loc["T2A R@1"]
    assert row["value"] == pytest.approx(0.5)
    assert 0 < row["low"] < 0.5 < row["high"] < 1
    assert row["wins"] == "2/2"
    assert table.loc["A2T R@1", ["value", "low", "high"]].tolist() == [0, 0, 0]
    assert table.loc["A2T R@1", "wins"] == "0/2"


def test_a_gain_in_several_languages_is_that_of_their_mean():
    clips = {
        (name, 0): {"T2A R@1": torch.rand(10, 3, generator=torch.Generator().manual_seed(k))}
        for k, name in enumerate("ab")
    }
    rows = [
        {"system": name, "seed": 0, "language": k, "T2A R@1": float(own["T2A R@1"][:, k].mean())}
        for (name, _), own in clips.items()
        for k in range(3)
    ]
    (row,) = compare.gains(Scores(pd.DataFrame(rows), clips), [("a", "b")], [0], ["T2A R@1"]).itertuples()
    assert row.value == pytest.approx(float(clips["a", 0]["T2A R@1"].mean() - clips["b", 0]["T2A R@1"].mean()))
    assert row.low <= row.value <= row.high
    assert row.wins == f"{int(row.value > 0)}/1"


@pytest.mark.parametrize(("low", "high", "word"), [(0.1, 0.2, "confirmed"), (-2, -1, "contradicted"), (-1, 1, "not")])
def test_an_interval_decides(low, high, word):
    assert compare.verdict(low, high).startswith(word)


def test_intervals_over_seeds_are_students():
    mean, low, high = compare.over_seeds([1.0, 2.0, 3.0])
    assert mean == pytest.approx(2)
    assert high - mean == pytest.approx(4.302653 / 3**0.5, rel=1e-5)
    assert mean - low == pytest.approx(high - mean)
    with pytest.raises(ValueError, match="two"):
        compare.over_seeds([1.0])


# Training


def test_every_system_is_trained_with_every_seed(runs):
    assert list(runs) == [(name, seed) for name in BOTH for seed in (0, 1)]
    for (name, _), run in runs.items():
        assert run.recipe.name == name
        assert (run.recipe.batch_size, len(run.history)) == (4, 2)


def test_scores_are_the_means_of_clips(runs, heard):
    table, clips = compare.scores(runs, heard.test)
    assert set(compare.METRICS) <= set(table.columns)
    for row in table.to_dict("records"):
        own = clips[row["system"], row["seed"]]
        assert all(len(values) == len(heard.test) for values in own.values())
        assert row["T2A R@1"] == pytest.approx(own["T2A R@1"].mean().item())
        assert row["T2A R@1"] <= row["T2A R@5"] <= row["T2A R@10"] <= 1


def test_trials_give_a_row_for_every_point_and_seed(book, heard):
    points = [Trial("batch", 4, "infonce", SMALL), Trial("batch", 8, "infonce", {**SMALL, "batch_size": 8})]
    table = compare.trials(book, heard, points, [0, 1])
    assert table[["value", "seed"]].to_numpy().tolist() == [[4, 0], [4, 1], [8, 0], [8, 1]]
    assert table["steps"].tolist() == [8, 8, 4, 4]


def test_overhead_is_one_for_the_first_and_knows_of_more_weights(heard):
    from pullpush.data.batches import PairDataset, collate
    from pullpush.encoders import create

    items = PairDataset(heard.train)
    batch = collate([items[i] for i in range(8)])
    plans = {name: recipe(name, batch_size=8) for name in ("infonce", "infonce+bi-dynamic-svr")}
    model = create("features", "hashed", dim=8, audio_dim=heard.train.dim)
    table = compare.overhead(plans, model, batch, rounds=2)
    assert table["system"].tolist() == list(plans)
    assert (table["seconds"] > 0).all()
    assert table["time"][0] == table["memory"][0] == 1
    assert table["memory"][1] > 1

"""Zero-shot accuracy, geometry and bootstrap intervals."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from torch.nn import functional as F

from pullpush.metrics import (
    alignment,
    bootstrap_interval,
    paired_bootstrap,
    uniformity,
    zero_shot,
    zero_shot_predictions,
)


def sphere(*shape, seed=0):
    return F.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=-1)


def test_zero_shot_equals_scikit_learn():
    audio, prompts = sphere(50, 6), sphere(4, 6, seed=1)
    labels = torch.arange(50) % 4
    predictions = zero_shot_predictions(audio, prompts)
    scores = zero_shot(audio, prompts, labels)
    assert scores["accuracy"] == pytest.approx(accuracy_score(labels, predictions))
    assert scores["macro accuracy"] == pytest.approx(balanced_accuracy_score(labels, predictions))


def test_several_prompts_are_averaged():
    audio, prompts = sphere(20, 6), sphere(4, 3, 6, seed=1)
    expected = (audio @ F.normalize(prompts.mean(1), dim=1).T).argmax(1)
    assert torch.equal(zero_shot_predictions(audio, prompts), expected)


def test_geometry_equals_a_loop_over_pairs():
    audio, text = sphere(7, 5), sphere(7, 5, seed=1)
    assert alignment(audio, text).item() == pytest.approx(
        np.mean([float((a - t) @ (a - t)) for a, t in zip(audio, text, strict=True)])
    )
    pairs = [float((audio[i] - audio[j]).norm() ** 2) for i in range(7) for j in range(i)]
    assert uniformity(audio).item() == pytest.approx(np.log(np.mean(np.exp(-2 * np.array(pairs)))))


def test_collapse_is_perfectly_aligned_and_not_uniform():
    point = sphere(1, 5).expand(6, 5)
    assert alignment(point, point) == 0
    assert uniformity(point).item() == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="two"):
        uniformity(point[:1])


def test_interval_covers_the_mean_and_shrinks_with_more_values():
    values = np.random.default_rng(0).normal(3, 1, 400)
    wide, narrow = bootstrap_interval(values[:40]), bootstrap_interval(values)
    assert narrow.low < values.mean() < narrow.high
    assert narrow.high - narrow.low < wide.high - wide.low
    # the normal approximation is an oracle for a mean of 400 values
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_paired_difference_sees_what_unpaired_intervals_hide():
    rng = np.random.default_rng(0)
    base = rng.normal(0, 5, 300)
    ours = base + 0.1 + rng.normal(0, 0.1, 300)
    assert paired_bootstrap(ours, base).low > 0
    assert bootstrap_interval(ours).low < 0


def test_captions_of_one_clip_are_resampled_together():
    clips = np.random.default_rng(0).normal(size=50)
    values, groups = np.repeat(clips, 5), np.repeat(np.arange(50), 5)
    grouped, naive = bootstrap_interval(values, groups=groups), bootstrap_interval(values)
    assert grouped.high - grouped.low > 1.8 * (naive.high - naive.low)


def test_one_value_has_no_width_and_bad_input_is_named():
    assert bootstrap_interval([2.0]) == (2, 2, 2)
    with pytest.raises(ValueError, match="finite"):
        bootstrap_interval([1.0, float("nan")])
    with pytest.raises(ValueError, match="same queries"):
        paired_bootstrap([1.0], [1.0, 2.0])

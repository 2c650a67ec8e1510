"""Zero-shot accuracy and geometry."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from torch.nn import functional as F

from pullpush.metrics import (
    alignment,
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

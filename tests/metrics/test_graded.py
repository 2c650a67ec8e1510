"""nDCG of both directions, held against scikit-learn and against what can be counted by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from sklearn.metrics import ndcg_score

from pullpush.metrics import METRICS
from pullpush.metrics._graded import graded_by_clip

unit = torch.nn.functional.normalize


def space(clips: int, captions: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    audio, text = unit(torch.randn(clips, 6), dim=-1), unit(torch.randn(clips, captions, 6), dim=-1)
    return audio, text, torch.rand(clips, clips).fill_diagonal_(1)


def test_both_directions_are_those_of_scikit_learn():
    audio, text, relevance = space(20, 3)
    found = graded_by_clip(audio, text, relevance)
    similarity = (text.flatten(0, 1) @ audio.T).numpy()
    fits = relevance.numpy().repeat(3, axis=0)
    asked = [ndcg_score(fits[[row]], similarity[[row]], k=10) for row in range(60)]
    assert found["T2A nDCG@10"].tolist() == pytest.approx(torch.tensor(asked).view(20, 3).mean(dim=1).tolist())
    answered = [ndcg_score(fits.T[[row]], similarity.T[[row]], k=10) for row in range(20)]
    assert found["A2T nDCG@10"].tolist() == pytest.approx(answered)


def test_a_clip_that_fits_in_part_counts_in_part():
    audio = torch.eye(3)
    relevance = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    text = unit(torch.tensor([[[0.5, 0.9, 0.1]], [[0.0, 1.0, 0.0]], [[0.9, 0.8, 0.1]]]), dim=-1)
    first = (0.5 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3))  # what fits half comes first, then what fits fully
    last = 1 / math.log2(4)  # what fits comes third
    found = graded_by_clip(audio, text, relevance)["T2A nDCG@10"].tolist()
    assert found[0] == pytest.approx(first)
    assert found[2] == pytest.approx(last)


def test_an_experiment_asks_for_it_by_name_and_gets_values_by_clip_and_language():
    audio, text, relevance = space(8, 2)
    embedded = SimpleNamespace(
        languages=("eng", "fra"), audio=audio, relevance=relevance, texts={"eng": text, "fra": audio[:, None]}.get
    )
    values = METRICS["graded"].make(embedded)
    assert values["A2T nDCG@10"].shape == (8, 2)
    english = graded_by_clip(audio, text, relevance)["A2T nDCG@10"]
    assert values["A2T nDCG@10"][:, 0] == pytest.approx(english.numpy())

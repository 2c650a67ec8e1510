"""Both spaces of one model, on a tiny world."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pullpush.encoders import create
from pullpush.metrics.geometry import space, uniformity
from pullpush.studies.language_encoder import geometry
from pullpush.training.evaluate import embed


@pytest.fixture(scope="module")
def model():
    return create("cnn", "hashed", dim=8, audio_channels=(4, 4, 8))


def unit(rows: int, seed: int) -> torch.Tensor:
    return F.normalize(torch.randn(rows, 6, generator=torch.Generator().manual_seed(seed)), dim=1)


def test_a_matrix_holds_captions_by_clips(model, world):
    audio, text = geometry.pairs(model, world.test, 5)
    assert audio.shape == text.shape == (5, 8)
    every, captions = embed(model, world.test)
    torch.testing.assert_close(audio, every[:5])
    matrix = geometry.similarity(audio, text)
    assert matrix[1, 3] == pytest.approx(float(captions[1] @ every[3]), abs=1e-6)
    order = [4, 0, 2, 1, 3]
    np.testing.assert_allclose(np.diag(geometry.similarity(audio, text, order)), np.diag(matrix)[order])
    assert len(geometry.pairs(model, world.test, 1000)[0]) == len(world.test)


def test_captions_that_are_alike_stand_side_by_side():
    text = unit(3, 0)[[0, 1, 2, 0, 1, 2]] + 0.01 * unit(6, 1)
    order = geometry.neighbours_first(F.normalize(text, dim=1))
    assert sorted(order) == list(range(6))
    assert [{a % 3 for a in order[start : start + 2]} for start in (0, 2, 4)] == [{order[n] % 3} for n in (0, 2, 4)]
    assert geometry.neighbours_first(unit(2, 0)) == [0, 1]


def test_asymmetry_is_that_of_the_metric():
    audio, text = unit(30, 0), unit(30, 1)
    found = geometry.asymmetry(geometry.similarity(audio, text))
    assert found == pytest.approx(float(space(audio, text)["asymmetry"].mean()), rel=1e-6)
    assert geometry.asymmetry(geometry.similarity(audio, audio)) == pytest.approx(0, abs=1e-12)
    assert geometry.asymmetry(np.ones((3, 3))) == 0


def test_the_encoder_is_asked_without_its_projection_and_once_for_a_text(model):
    texts = ["a frog croaks", "a bell rings", "rain falls", "a dog barks"]
    features = F.normalize(model.eval().text(texts), dim=1)
    found = geometry.encoder_uniformity(model, [*texts, *texts], batch_size=3)
    assert found == pytest.approx(uniformity(features).item(), abs=1e-5)

"""Both spaces of one model, and its accuracy prompt by prompt, on a tiny world."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pullpush.encoders import create
from pullpush.metrics.geometry import space, uniformity
from pullpush.studies.language_encoder import geometry, prompts
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


def test_a_space_is_measured_before_training_and_the_model_left_as_it_was(model, world):
    model.train()
    found = geometry.space_before(model, world.train, count=6)
    assert model.training
    model.eval()
    audio, text = geometry.pairs(model, world.train, 6)
    assert found["text uniformity"] == pytest.approx(float(space(audio, text)["text uniformity"].mean()))
    captions = [several[0] for several in world.train.head(6).captions("eng")]
    assert found["encoder uniformity"] == pytest.approx(geometry.encoder_uniformity(model, captions))


def test_the_encoder_is_asked_without_its_projection_and_once_for_a_text(model):
    texts = ["a frog croaks", "a bell rings", "rain falls", "a dog barks"]
    features = F.normalize(model.eval().text(texts), dim=1)
    found = geometry.encoder_uniformity(model, [*texts, *texts], batch_size=3)
    assert found == pytest.approx(uniformity(features).item(), abs=1e-5)


def test_every_prompt_and_their_mean_are_asked(model, world):
    models = {(system, seed): model for system in ("CLAP", "CLAPs") for seed in (0, 1)}
    templates = ("A sound of {label}.", "{label}.")
    table = prompts.by_prompt(models, world, templates)
    assert list(table["template"].unique()) == [*templates, prompts.ENSEMBLE]
    assert set(table["seeds"]) == {2}
    assert set(table["clips"]) == {len(world.singles.labels.unique())}
    assert table["value"].between(0, 1).all()
    same = table.pivot_table(index="template", columns="system", values="value")
    np.testing.assert_array_equal(same["CLAP"], same["CLAPs"])

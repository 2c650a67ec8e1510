import math

import numpy as np
import pytest
import torch
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.training import Diagnostics, recipe
from pullpush.training.diagnostics import distances, force_norms
from pullpush.training.objective import Objective

ROWS = range(9)


def step(name="infonce", *, lr=0.05, tau=None, model=None, optimiser=torch.optim.SGD):
    """One real step of training and what was measured at it, with the embeddings and gradients as arrays."""
    one = recipe(name, dim=8)
    objective = Objective(model or TinyModel(dropout=0), one)
    dataset = PairDataset(TinyClips(9))
    batch = collate([dataset[row] for row in ROWS])
    watch = Diagnostics(tau=tau)
    optimiser = optimiser(objective.parameters(), lr=lr)
    start = watch.before(objective, batch)
    outcome = objective(batch)
    torch.testing.assert_close(start, outcome.offer.text.detach())
    outcome.offer.text.retain_grad()
    outcome.loss.backward()
    optimiser.step()
    row = watch.after(objective, batch, outcome.offer, start)
    moved = objective.model.encode_text(batch.texts).detach()
    audio, text = (x.detach().double().numpy() for x in outcome.offer[:2])
    return row, audio, text, moved.double().numpy(), outcome.offer.text.grad.double().numpy()


def cosine(u, v):
    return u @ v / np.linalg.norm(u) / np.linalg.norm(v)


def test_forces_equal_explicit_loops():
    row, audio, text, *_ = step(tau=0.2)
    norms = {name: [] for name in ("pull", "push", "parallel", "perpendicular", "sideways")}
    for i, t in enumerate(text):
        p = np.exp(audio @ t / 0.2)
        p /= p.sum()
        pull = (p[i] - 1) * audio[i] / 0.2
        push = sum(p[j] * audio[j] for j in range(len(audio)) if j != i) / 0.2
        u = (audio[i] - t) / np.linalg.norm(audio[i] - t)
        parts = {"pull": pull, "push": push, "parallel": (push @ u) * u, "perpendicular": push - (push @ u) * u}
        plane = np.linalg.qr(np.stack([t, audio[i]], axis=1)).Q  # an orthonormal basis of the plane of t⁺ and a⁺
        parts["sideways"] = push - plane @ (plane.T @ push)
        for name, part in parts.items():
            norms[name].append(np.linalg.norm(part))
    for name, values in norms.items():
        assert row[name] == pytest.approx(np.mean(values), rel=1e-4), name


@pytest.mark.parametrize("name", ["infonce", "siglip"])
def test_drift_of_gradient_and_of_the_displacement(name):
    row, audio, text, moved, gradient = step(name)
    for kind, movement in (("gradient", -gradient), ("update", moved - text)):
        straight, tangent, pull = [], [], []
        for a, t, m in zip(audio, text, movement, strict=True):
            plane = np.eye(len(t)) - np.outer(t, t)
            straight.append(cosine(m, a - t))
            tangent.append(cosine(plane @ m, plane @ (a - t)))
            pull.append(cosine(m, a))
        assert row[f"{kind}_drift"] == pytest.approx(np.mean(straight), abs=1e-4)
        assert row[f"{kind}_drift_tangent"] == pytest.approx(np.mean(tangent), abs=1e-3)
        assert row[f"{kind}_drift_pull"] == pytest.approx(np.mean(pull), abs=1e-4)


def test_distance_changes_by_the_two_terms():
    row, audio, text, moved, _ = step(lr=0.5)
    before = ((text - audio) ** 2).sum(1).mean()
    after = ((moved - audio) ** 2).sum(1).mean()
    assert row["distance_before"] == pytest.approx(before, rel=1e-5)
    assert row["distance_after"] == pytest.approx(after, rel=1e-5)
    assert row["ideal"] + row["noise_penalty"] == pytest.approx(after - before, abs=1e-5)
    assert row["penalty_ratio"] == pytest.approx(row["noise_penalty"] / abs(row["ideal"]))


def test_measuring_leaves_buffers_and_weights_alone():
    class Normalised(TinyModel):
        def __init__(self):
            super().__init__(dropout=0)
            self.text.append(torch.nn.BatchNorm1d(8))

    model = Normalised()
    step(model=model)
    assert model.text[2].num_batches_tracked == 1 + 1  # the step's own forward and this test's, not the measurement's


def test_one_pair_has_no_push_and_no_share():
    text, audio = torch.eye(2)[:1], torch.eye(2)[1:]
    row = force_norms(text, audio, 0.07)
    assert row["push"] == row["pull"] == 0
    assert math.isnan(row["perpendicular_share"])
    assert math.isnan(distances(text, text, audio)["penalty_ratio"])

"""Forces against autograd (SupCLAP Eq. 1–4), the split of the push, and Eq. 12 as an identity."""

import numpy as np
import pytest
import torch
from embeddings import pairs
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from pullpush.forces import decompose, distance_change, drift, local_global, sideways, step_parts, tangent
from pullpush.losses import InfoNCE, info_nce


@pytest.mark.parametrize("n", [1, 2, 24])
@pytest.mark.parametrize("tau", [0.07, 0.5])
def test_pull_plus_push_is_the_gradient(n, tau):
    audio, text = pairs(n)
    text.requires_grad_()
    (gradient,) = torch.autograd.grad(n * info_nce(audio, text, tau, "t2a"), text)
    forces = decompose(text.detach(), audio, tau)
    torch.testing.assert_close(forces.gradient, gradient, atol=1e-12, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 10), seed=st.integers(0, 10_000), tau=st.floats(0.03, 1))
def test_the_push_splits_into_orthogonal_parts(n, seed, tau):
    audio, text = pairs(n, seed=seed)
    forces = decompose(text, audio, tau)
    torch.testing.assert_close(forces.parallel + forces.perpendicular, forces.push)
    scale = forces.push.norm(dim=1)
    assert ((forces.perpendicular * forces.unit).sum(1).abs() <= 1e-9 * (1 + scale)).all()
    assert torch.allclose(forces.unit.norm(dim=1), torch.ones(n, dtype=torch.float64))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(decompose(text[order], audio[order], tau).push, forces.push[order])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_forces_are_computed_in_single_precision_whatever_autocast_says(dtype):
    audio, text = (x.to(dtype) for x in pairs(24))
    exact = decompose(text.float(), audio.float(), 0.02)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for ours, theirs in zip(decompose(text, audio, tau=0.02), exact, strict=True):
            assert torch.equal(ours, theirs)


def test_a_loss_of_the_library_is_audited_as_its_function_is():
    audio, text = pairs(24)
    module = step_parts(InfoNCE(direction="t2a"), text, audio, batch_size=8)
    with torch.inference_mode():  # in the midst of an evaluation, of what was embedded there
        apart = [x.clone() for x in (text, audio)]
        function = step_parts(lambda a, t: info_nce(a, t, direction="t2a"), *apart, batch_size=8)
    torch.testing.assert_close(module, function)


def test_pull_by_hand():
    text = torch.tensor([[1.0, 0.0]])
    audio = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    forces = decompose(text, audio, 1.0, positive=torch.tensor([0]))
    p = 1 / (1 + torch.tensor(1.0).exp())  # s⁺ = 0, s⁻ = 1
    assert torch.allclose(forces.p_positive, p)
    assert torch.allclose(forces.pull, (p - 1) * audio[:1])
    assert torch.allclose(forces.push, (1 - p) * audio[1:])


def test_one_pair_feels_no_force():
    audio, text = pairs(1)
    forces = decompose(text, audio)
    assert forces.pull.norm() == 0
    assert forces.push.norm() == 0
    assert forces.p_positive.item() == 1


def test_pull_survives_a_probability_that_rounds_to_one():
    text = torch.tensor([[1.0, 0.0]])
    audio = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    forces = decompose(text, audio, 0.05, positive=torch.tensor([0]))
    assert forces.p_positive.item() == 1  # in float32
    assert forces.pull.norm() > 0
    assert torch.allclose(forces.pull.norm(), forces.push.norm())


def test_an_anchor_on_its_positive_has_no_direction_and_no_nan():
    audio, _ = pairs(3)
    forces = decompose(audio.clone(), audio)
    assert (forces.unit == 0).all()
    assert torch.equal(forces.perpendicular, forces.push)


def test_a_batch_is_a_part_of_all_negatives():
    audio, text = pairs(12)
    subset = torch.arange(3, 7)
    everything = decompose(text, audio)
    some = decompose(text[subset], audio, positive=subset)
    torch.testing.assert_close(some.push, everything.push[subset])


def test_drift_is_the_cosine_even_for_tiny_vectors():
    audio, text = pairs(5)
    expected = F.cosine_similarity(audio, text)
    torch.testing.assert_close(drift(1e-30 * audio, 1e-25 * text), expected)
    assert drift(torch.zeros(1, 3), torch.ones(1, 3)).isnan().all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), step=st.floats(1e-4, 2))
def test_equation_12_is_an_identity_for_any_step(seed, step):
    audio, text = pairs(6, seed=seed)
    force, _ = pairs(6, seed=seed + 1)
    change = distance_change(text, audio, force, step=step)
    measured = (text - step * force - audio).square().sum(1) - (text - audio).square().sum(1)
    torch.testing.assert_close(change.total, measured, atol=1e-12, rtol=1e-9)
    assert (change.noise_penalty >= 0).all()


def test_tangent_vectors_stay_on_the_sphere_to_first_order():
    audio, text = pairs(4)
    moved = tangent(audio, text)
    assert (moved * text).sum(1).abs().max() < 1e-12


@given(seed=st.integers(0, 100))
def test_the_sideways_part_leaves_the_plane_of_anchor_and_positive(seed):
    generator = torch.Generator().manual_seed(seed)
    text, audio, vector = torch.randn(3, 4, 6, generator=generator, dtype=torch.float64)
    part = sideways(vector, text, audio)
    for row in range(4):
        plane = torch.linalg.qr(torch.stack([text[row], audio[row]], dim=1)).Q
        torch.testing.assert_close(part[row], vector[row] - plane @ (plane.T @ vector[row]))


def test_the_pull_has_no_sideways_part_and_an_anchor_on_its_positive_no_nan():
    text, audio = pairs(5, 8, seed=3)
    assert sideways(decompose(text, audio).pull, text, audio).abs().max() < 1e-12
    assert torch.isfinite(sideways(audio, audio, audio)).all()


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match="share d"):
        decompose(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="positive"):
        decompose(torch.zeros(2, 3), torch.zeros(4, 3))


def test_one_batch_of_everything_is_the_global_component():
    audio, text = pairs(10)
    parts = local_global(text, audio, batch_size=10, epochs=2)
    torch.testing.assert_close(parts.batch, parts.whole)
    assert parts.variance.abs().max() < 1e-12
    torch.testing.assert_close(parts.cosine, torch.ones(10, dtype=torch.float64))


def test_local_variance_equals_numpy_s():
    audio, text = pairs(8)
    parts = local_global(text, audio, batch_size=4, epochs=5, seed=3)
    generator = torch.Generator().manual_seed(3)
    seen = {i: [] for i in range(8)}
    for _ in range(5):
        for rows in torch.randperm(8, generator=generator).view(-1, 4):
            for row, force in zip(rows.tolist(), decompose(text[rows], audio[rows]).perpendicular, strict=True):
                seen[row].append(force.numpy())
    expected = [np.var(seen[i], axis=0, ddof=1).sum() for i in range(8)]
    np.testing.assert_allclose(parts.variance.numpy(), expected, rtol=1e-9)


def test_smaller_batches_fluctuate_more():
    audio, text = pairs(64)
    small, large = (local_global(text, audio, batch_size=b, epochs=20) for b in (4, 32))
    assert (small.variance / small.batch).mean() > (large.variance / large.batch).mean()
    assert small.cosine.mean() < large.cosine.mean()


def test_batch_size_out_of_range_is_named():
    audio, text = pairs(4)
    with pytest.raises(ValueError, match="batch_size must be at least 2 and at most 4, got 5"):
        local_global(text, audio, batch_size=5)


def test_many_vectors_at_one_point_are_taken_and_other_shapes_are_not():
    vectors, points = torch.randn(3, 4, 5), F.normalize(torch.randn(3, 1, 5), dim=-1)
    torch.testing.assert_close(tangent(vectors, points), tangent(vectors, points.expand_as(vectors)))
    for shape in ((1, 5), (1, 1, 5), (3, 4, 1), (3, 2, 5)):
        with pytest.raises(ValueError, match="must have one shape"):
            tangent(vectors, torch.ones(shape))

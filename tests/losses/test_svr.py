"""Support Vector Regularization against double loops, autograd and the paper's Eq. 14–18."""

import math
import re

import pytest
import torch
from embeddings import DIRECTIONS, DOUBLE, each_direction, pairs, same_with_gradients
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.losses import _tiles, info_nce, support_vector, svr

EVERY_READING = [
    pytest.param(direction, similarity, include, id=f"{direction}-{similarity}-{'with' if include else 'without'}")
    for direction in DIRECTIONS
    for similarity in ("cosine", "dot")
    for include in (True, False)
]


def loop(audio, text, radius, tau, direction, similarity, include):
    """Eq. 6 in plain Python, one similarity at a time."""
    if direction == "both":
        return sum(loop(audio, text, radius, tau, one, similarity, include) for one in ("t2a", "a2t"))
    anchors, candidates = (text, audio) if direction == "t2a" else (audio, text)
    anchors, candidates = anchors.tolist(), candidates.tolist()
    total = 0.0
    for i, (anchor, positive) in enumerate(zip(anchors, candidates, strict=True)):
        r = radius[i] if isinstance(radius, list) else radius
        distance = math.dist(anchor, positive)
        support = [x + r * (y - x) / distance for x, y in zip(anchor, positive, strict=True)]
        length = math.hypot(*support) if similarity == "cosine" else 1.0
        scores = [sum(x * y for x, y in zip(support, key, strict=True)) / length / tau for key in candidates]
        denominator = sum(math.exp(score) for j, score in enumerate(scores) if include or j != i)
        total -= scores[i] - math.log(denominator)
    return total / len(anchors)


def two_matrices(audio, text, radius, tau):
    """The closed form of text-to-audio with the dot product, from T·Aᵀ and A·Aᵀ."""
    c = (radius / (audio - text).norm(dim=1))[:, None]
    return F.cross_entropy(((1 - c) * (text @ audio.T) + c * (audio @ audio.T)) / tau, torch.arange(len(text)))


def test_radius_counts_distance_from_the_anchor_to_the_positive():
    audio, text = pairs(5)
    distance = (audio - text).norm(dim=1)
    assert torch.allclose(support_vector(text, audio, 0.0), text)
    assert torch.allclose(support_vector(text, audio, distance), audio)
    for radius in (-0.4, 0.3, 7.0):
        moved = support_vector(text, audio, radius)
        assert torch.allclose((moved - text).norm(dim=1), torch.full((5,), abs(radius), dtype=DOUBLE))
        assert torch.allclose((moved - audio).norm(dim=1), (distance - radius).abs())


def test_jacobian_is_eq_15():
    audio, text = pairs(1)
    jacobian = torch.autograd.functional.jacobian(lambda t: support_vector(t, audio, 0.3), text)[0, :, 0]
    unit = F.normalize(audio - text, dim=1)[0]
    perpendicular = torch.eye(6, dtype=DOUBLE) - torch.outer(unit, unit)
    expected = torch.eye(6, dtype=DOUBLE) - 0.3 / (audio - text).norm() * perpendicular
    assert torch.allclose(jacobian, expected, atol=1e-12)


def test_anchor_on_its_positive_stays_and_has_the_identity_for_jacobian():
    anchor = pairs(3)[0].requires_grad_()
    positive = anchor.detach().clone().requires_grad_()
    radius = torch.tensor(0.5, dtype=DOUBLE, requires_grad=True)
    moved = support_vector(anchor, positive, radius)
    assert torch.equal(moved, anchor)
    moved.sum().backward()
    assert torch.equal(anchor.grad, torch.ones_like(anchor))
    assert positive.grad.count_nonzero() == 0
    assert radius.grad == 0


@pytest.mark.parametrize(("direction", "similarity", "include"), EVERY_READING)
@pytest.mark.parametrize("radius", [0.4, -0.7, 30.0, [0.1, 0.9, -0.2, 1.3, 5.0, 0.0, 0.6]])
def test_equals_the_double_loop(direction, similarity, include, radius):
    audio, text = pairs(7)
    expected = loop(audio, text, radius, 0.3, direction, similarity, include)
    options = {"similarity": similarity, "positive_in_denominator": include}
    r = torch.tensor(radius, dtype=DOUBLE) if isinstance(radius, list) else radius
    assert svr(audio, text, r, 0.3, direction, **options).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("direction", "similarity", "include"), EVERY_READING)
@pytest.mark.parametrize("rows", [4, 3, 1])
def test_gradcheck_also_through_radius_and_temperature(direction, similarity, include, rows, monkeypatch):
    monkeypatch.setattr(_tiles, "BLOCK", rows * 4)  # one block, a short last block, one row each
    audio, text = pairs(4, d=3)
    radius = torch.tensor([0.3, -0.2, 0.8, 2.5], dtype=DOUBLE, requires_grad=True)
    tau = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True)
    options = {"similarity": similarity, "positive_in_denominator": include}
    inputs = (audio.requires_grad_(), text.requires_grad_(), radius, tau)
    assert torch.autograd.gradcheck(lambda a, t, r, tau: svr(a, t, r, tau, direction, **options), inputs)


def test_scalar_radius_gathers_the_gradient_of_all_rows():
    audio, text = pairs(5)
    scalar = torch.tensor(0.2, dtype=DOUBLE, requires_grad=True)
    rows = torch.full((5,), 0.2, dtype=DOUBLE, requires_grad=True)
    svr(audio, text, scalar).backward()
    svr(audio, text, rows).backward()
    assert torch.allclose(scalar.grad, rows.grad.sum())


@each_direction
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_radius_zero_is_plain_contrastive(direction, similarity):
    audio, text = pairs(6)
    loss = svr(audio, text, 0.0, 0.1, direction, similarity=similarity)
    assert torch.allclose(loss, info_nce(audio, text, 0.1, direction), atol=1e-14)


def test_equals_the_closed_form_of_two_matrices_with_its_gradients():
    inputs = [x.requires_grad_() for x in pairs(6)] + [torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)]
    same_with_gradients(svr(*inputs, 0.1, similarity="dot"), two_matrices(*inputs, 0.1), inputs)


def test_near_pairs_keep_the_precision_that_two_matrices_lose():
    audio, noise = pairs(8, d=64)
    text = F.normalize(audio + 1e-4 * noise, dim=1)
    exact = svr(audio, text, 1.0, similarity="dot").item()
    single = audio.float(), text.float()
    # What rounding the embeddings to float32 does to the exact loss is the best that one can ask for.
    rounded = svr(*(x.double() for x in single), 1.0, similarity="dot").item()
    ours = abs(svr(*single, 1.0, similarity="dot").item() - rounded)
    theirs = abs(two_matrices(*single, 1.0, 0.07).item() - rounded)
    assert ours < 1e-5 * exact
    assert theirs > 10 * ours


@pytest.mark.parametrize("direction", ["t2a", "a2t"])
@pytest.mark.parametrize("radius", [0.3, 1.7, -0.5])
def test_eq_16_each_negative_keeps_its_parallel_part_and_scales_the_perpendicular_one(direction, radius):
    audio, text = pairs(5)
    anchor, keys = (text, audio) if direction == "t2a" else (audio, text)
    support = support_vector(anchor, keys, radius)
    p = (support @ keys.T / 0.2).softmax(dim=1)  # P_sup, Eq. 3
    for i in range(5):
        unit = F.normalize(keys[i] - anchor[i], dim=0)
        factor = 1 - radius / (keys[i] - anchor[i]).norm()
        for j in {0, 1, 2, 3, 4} - {i}:
            leaf = anchor[i : i + 1].clone().requires_grad_()
            score = support_vector(leaf, keys[i : i + 1], radius) @ keys[j] / 0.2
            (force,) = torch.autograd.grad(p[i, j] * score.sum(), leaf)  # what negative j adds to ∇_t L_svr
            push = p[i, j] * keys[j] / 0.2
            parallel = (push @ unit) * unit
            assert torch.allclose((force[0] @ unit) * unit, parallel, atol=1e-10)
            assert torch.allclose(force[0] - (force[0] @ unit) * unit, factor * (push - parallel), atol=1e-10)


@pytest.mark.parametrize("radius", [0.3, 1.7, -0.5])
def test_eq_17_and_18_hold_for_the_gradient_of_the_whole_loss(radius):
    audio, text = pairs(6)
    tau, alpha, n = 0.2, 0.7, 6
    leaf = text.clone().requires_grad_()
    loss = info_nce(audio, leaf, tau, "t2a") + alpha * svr(audio, leaf, radius, tau, similarity="dot")
    (gradient,) = torch.autograd.grad(loss, leaf)
    plain = decompose(text, audio, tau)
    moved = decompose(support_vector(text, audio, radius), audio, tau)
    split = lambda force: (force * plain.unit).sum(1, keepdim=True) * plain.unit  # noqa: E731
    sup_parallel = split(moved.gradient)
    factor = (1 - radius / (audio - text).norm(dim=1))[:, None]
    assert torch.allclose(n * split(gradient), split(plain.gradient) + alpha * sup_parallel, atol=1e-10)
    expected = (plain.gradient - split(plain.gradient)) + alpha * factor * (moved.gradient - sup_parallel)
    assert torch.allclose(n * (gradient - split(gradient)), expected, atol=1e-10)


def test_cosine_departs_from_eq_16():
    audio, text = pairs(6)
    leaf = text.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(svr(audio, leaf, 0.3, 0.2), leaf)
    moved = decompose(support_vector(text, audio, 0.3), audio, 0.2)
    assert not torch.allclose((6 * gradient * moved.unit).sum(1), (moved.gradient * moved.unit).sum(1), rtol=1e-3)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_pairs_that_coincide_are_plain_contrastive(similarity):
    audio = pairs(5)[0].requires_grad_()
    text = audio.detach().clone().requires_grad_()
    loss = svr(audio, text, 0.5, 0.1, "both", similarity=similarity)
    assert torch.allclose(loss, info_nce(audio, text, 0.1))
    assert all(x.isfinite().all() for x in torch.autograd.grad(loss, (audio, text)))


def test_cosine_of_a_huge_radius_is_that_of_the_direction():
    audio, text = pairs(5)
    direction = F.normalize(audio - text, dim=1)
    for sign in (1, -1):
        limit = info_nce(audio, sign * direction, 0.2, "t2a")
        assert torch.allclose(svr(audio, text, sign * 1e9, 0.2), limit, atol=1e-7)


def test_blocks_do_not_change_the_loss(monkeypatch):
    audio, text = pairs(9)
    whole = svr(audio, text, 0.3, 0.1, "both", positive_in_denominator=False)
    monkeypatch.setattr(_tiles, "BLOCK", 2 * 9)
    assert torch.allclose(svr(audio, text, 0.3, 0.1, "both", positive_in_denominator=False), whole, atol=1e-14)


@pytest.mark.parametrize(("rows", "shape"), [((2,), (3,)), ((2,), (2, 1)), ((2, 3), (3,))])
def test_a_radius_is_one_for_each_row(rows, shape):
    with pytest.raises(ValueError, match=re.escape(f"{rows}, one for each row")):
        svr(torch.ones(*rows, 4), torch.ones(*rows, 4), torch.zeros(shape))


def test_a_confident_batch_keeps_its_double_digits():
    """Negatives of probability near e⁻²⁸ push by exactly so much, not by nothing and not by e⁻²⁸ ± e⁻²⁰."""
    text = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=DOUBLE, requires_grad=True)
    audio = text.detach().clone()
    (gradient,) = torch.autograd.grad(svr(audio, text, 0.0, 1 / 28, similarity="dot"), text)
    p = 1 / (1 + math.exp(28))
    expected = torch.tensor([[-p, p], [p, -p]], dtype=DOUBLE) * 28 / 2
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=0)

"""Support Vector Regularization against double loops, autograd and the paper's Eq. 14–18."""

import math
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.losses import info_nce
from pullpush.losses.svr import (
    SVR,
    RadiusPredictor,
    SimpleReweight,
    positive_first,
    radius_constraint,
    simple_reweight,
    support_vector,
    svr,
)

MODULE = sys.modules["pullpush.losses.svr"]  # the attribute of that name is the function
DOUBLE = torch.float64
EVERY_READING = [
    pytest.param(direction, similarity, include, id=f"{direction}-{similarity}-{'with' if include else 'without'}")
    for direction in ("t2a", "a2t", "both")
    for similarity in ("cosine", "dot")
    for include in (True, False)
]


def embeddings(n, d=6, seed=0, dtype=DOUBLE):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: F.normalize(torch.randn(n, d, generator=generator, dtype=dtype), dim=1)  # noqa: E731
    return draw(), draw()


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


# --- the support vector


def test_radius_counts_distance_from_the_anchor_to_the_positive():
    audio, text = embeddings(5)
    distance = (audio - text).norm(dim=1)
    assert torch.allclose(support_vector(text, audio, 0.0), text)
    assert torch.allclose(support_vector(text, audio, distance), audio)
    for radius in (-0.4, 0.3, 7.0):
        moved = support_vector(text, audio, radius)
        assert torch.allclose((moved - text).norm(dim=1), torch.full((5,), abs(radius), dtype=DOUBLE))
        assert torch.allclose((moved - audio).norm(dim=1), (distance - radius).abs())


def test_jacobian_is_eq_15():
    audio, text = embeddings(1)
    jacobian = torch.autograd.functional.jacobian(lambda t: support_vector(t, audio, 0.3), text)[0, :, 0]
    unit = F.normalize(audio - text, dim=1)[0]
    perpendicular = torch.eye(6, dtype=DOUBLE) - torch.outer(unit, unit)
    expected = torch.eye(6, dtype=DOUBLE) - 0.3 / (audio - text).norm() * perpendicular
    assert torch.allclose(jacobian, expected, atol=1e-12)


def test_anchor_on_its_positive_stays_and_has_the_identity_for_jacobian():
    anchor = embeddings(3)[0].requires_grad_()
    positive = anchor.detach().clone().requires_grad_()
    radius = torch.tensor(0.5, dtype=DOUBLE, requires_grad=True)
    moved = support_vector(anchor, positive, radius)
    assert torch.equal(moved, anchor)
    moved.sum().backward()
    assert torch.equal(anchor.grad, torch.ones_like(anchor))
    assert positive.grad.count_nonzero() == 0
    assert radius.grad == 0


# --- the loss


@pytest.mark.parametrize(("direction", "similarity", "include"), EVERY_READING)
@pytest.mark.parametrize("radius", [0.4, -0.7, 30.0, [0.1, 0.9, -0.2, 1.3, 5.0, 0.0, 0.6]])
def test_equals_the_double_loop(direction, similarity, include, radius):
    audio, text = embeddings(7)
    expected = loop(audio, text, radius, 0.3, direction, similarity, include)
    options = {"similarity": similarity, "positive_in_denominator": include}
    r = torch.tensor(radius, dtype=DOUBLE) if isinstance(radius, list) else radius
    assert svr(audio, text, r, 0.3, direction, **options).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("direction", "similarity", "include"), EVERY_READING)
@pytest.mark.parametrize("rows", [4, 3, 1])
def test_gradcheck_also_through_radius_and_temperature(direction, similarity, include, rows, monkeypatch):
    monkeypatch.setattr(MODULE, "BLOCK", rows * 4)  # one block, a short last block, one row each
    audio, text = embeddings(4, d=3)
    radius = torch.tensor([0.3, -0.2, 0.8, 2.5], dtype=DOUBLE, requires_grad=True)
    tau = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True)
    options = {"similarity": similarity, "positive_in_denominator": include}
    inputs = (audio.requires_grad_(), text.requires_grad_(), radius, tau)
    assert torch.autograd.gradcheck(lambda a, t, r, tau: svr(a, t, r, tau, direction, **options), inputs)


def test_scalar_radius_gathers_the_gradient_of_all_rows():
    audio, text = embeddings(5)
    scalar = torch.tensor(0.2, dtype=DOUBLE, requires_grad=True)
    rows = torch.full((5,), 0.2, dtype=DOUBLE, requires_grad=True)
    svr(audio, text, scalar).backward()
    svr(audio, text, rows).backward()
    assert torch.allclose(scalar.grad, rows.grad.sum())


@pytest.mark.parametrize("direction", ["t2a", "a2t", "both"])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_radius_zero_is_plain_contrastive(direction, similarity):
    audio, text = embeddings(6)
    loss = svr(audio, text, 0.0, 0.1, direction, similarity=similarity)
    assert torch.allclose(loss, info_nce(audio, text, 0.1, direction), atol=1e-14)


def test_radius_zero_has_the_gradient_of_plain_contrastive_too():
    audio, text = (x.requires_grad_() for x in embeddings(6))
    ours = torch.autograd.grad(svr(audio, text, 0.0, 0.1, similarity="dot"), (audio, text))
    plain = torch.autograd.grad(info_nce(audio, text, 0.1, "t2a"), (audio, text))
    assert all(torch.allclose(x, y, atol=1e-14) for x, y in zip(ours, plain, strict=True))


def test_equals_the_closed_form_of_two_matrices_with_its_gradients():
    inputs = [x.requires_grad_() for x in embeddings(6)] + [torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)]
    ours, theirs = svr(*inputs, 0.1, similarity="dot"), two_matrices(*inputs, 0.1)
    assert torch.allclose(ours, theirs, atol=1e-13)
    pairs = zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True)
    assert all(torch.allclose(x, y, atol=1e-12) for x, y in pairs)


def test_near_pairs_keep_the_precision_that_two_matrices_lose():
    audio, noise = embeddings(8, d=64)
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
    audio, text = embeddings(5)
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
    audio, text = embeddings(6)
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
    audio, text = embeddings(6)
    leaf = text.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(svr(audio, leaf, 0.3, 0.2), leaf)
    moved = decompose(support_vector(text, audio, 0.3), audio, 0.2)
    assert not torch.allclose((6 * gradient * moved.unit).sum(1), (moved.gradient * moved.unit).sum(1), rtol=1e-3)


# --- properties and limits


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 9),
    seed=st.integers(0, 10_000),
    tau=st.floats(0.02, 2.0),
    radius=st.floats(-3, 3),
    similarity=st.sampled_from(["cosine", "dot"]),
    include=st.booleans(),
)
def test_permuting_the_batch_and_swapping_modalities_change_nothing(n, seed, tau, radius, similarity, include):
    audio, text = embeddings(n, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator)
    radii = radius + torch.rand(n, generator=generator, dtype=DOUBLE)
    options = {"similarity": similarity, "positive_in_denominator": include}
    loss = svr(audio, text, radii, tau, "t2a", **options)
    assert torch.allclose(svr(audio[order], text[order], radii[order], tau, "t2a", **options), loss, atol=1e-9)
    assert torch.allclose(svr(text, audio, radii, tau, "a2t", **options), loss, atol=1e-9)
    both = svr(audio, text, radii, tau, "both", **options)
    assert torch.allclose(both, loss + svr(audio, text, radii, tau, "a2t", **options), atol=1e-9)
    assert not include or loss >= 0


@pytest.mark.parametrize(("direction", "similarity", "include"), EVERY_READING)
def test_one_pair_has_nothing_to_push_away_from(direction, similarity, include):
    audio, text = (x.requires_grad_() for x in embeddings(1))
    radius = torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)
    options = {"similarity": similarity, "positive_in_denominator": include}
    loss = svr(audio, text, radius, 0.07, direction, **options)
    assert loss.item() == 0
    assert all(not x.count_nonzero() for x in torch.autograd.grad(loss, (audio, text, radius)))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_pairs_that_coincide_are_plain_contrastive(similarity):
    audio = embeddings(5)[0].requires_grad_()
    text = audio.detach().clone().requires_grad_()
    loss = svr(audio, text, 0.5, 0.1, "both", similarity=similarity)
    assert torch.allclose(loss, info_nce(audio, text, 0.1))
    assert all(x.isfinite().all() for x in torch.autograd.grad(loss, (audio, text)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-7, 1e-5, 1e-3])
def test_nearly_coinciding_pairs_are_finite(dtype, gap):
    audio, noise = embeddings(5, d=32)
    text = F.normalize(audio + gap * noise, dim=1).to(dtype).requires_grad_()
    audio = audio.to(dtype).requires_grad_()
    radius = torch.tensor(0.5, requires_grad=True)
    loss = svr(audio, text, radius, 0.07, "both")
    assert loss.isfinite()
    assert all(x.isfinite().all() for x in torch.autograd.grad(loss, (audio, text, radius)))


def test_cosine_of_a_huge_radius_is_that_of_the_direction():
    audio, text = embeddings(5)
    direction = F.normalize(audio - text, dim=1)
    for sign in (1, -1):
        limit = info_nce(audio, sign * direction, 0.2, "t2a")
        assert torch.allclose(svr(audio, text, sign * 1e9, 0.2), limit, atol=1e-7)


def test_support_vectors_without_length_are_finite():
    audio = embeddings(5)[0].requires_grad_()
    text = (-audio.detach()).requires_grad_()
    loss = svr(audio, text, 1.0, 0.1)  # halfway between opposite vectors: the origin
    assert loss.item() == pytest.approx(math.log(5))
    assert all(x.isfinite().all() for x in torch.autograd.grad(loss, (audio, text)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_half_precision_is_computed_in_single(dtype, similarity):
    audio, text = (x.to(dtype).requires_grad_() for x in embeddings(12, d=32))
    loss = svr(audio, text, 0.3, 0.01, "both", similarity=similarity)
    exact = svr(audio.double(), text.double(), 0.3, 0.01, "both", similarity=similarity)
    assert loss.dtype == dtype
    assert loss.item() == pytest.approx(exact.item(), rel=torch.finfo(dtype).eps)
    gradients = [torch.autograd.grad(x, (audio, text)) for x in (loss, exact)]
    assert all(torch.allclose(x, y, rtol=2e-2, atol=1e-2) for x, y in zip(*gradients, strict=True))
    assert support_vector(text, audio, 0.3).dtype == dtype


def test_autocast_does_not_round_similarities():
    audio, text = (x.float() for x in embeddings(12, d=32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = svr(audio, text, 0.3, 0.01)
    assert torch.equal(inside, svr(audio, text, 0.3, 0.01))


def test_blocks_do_not_change_the_loss(monkeypatch):
    audio, text = embeddings(9)
    whole = svr(audio, text, 0.3, 0.1, "both", positive_in_denominator=False)
    monkeypatch.setattr(MODULE, "BLOCK", 2 * 9)
    assert torch.allclose(svr(audio, text, 0.3, 0.1, "both", positive_in_denominator=False), whole, atol=1e-14)


def test_without_gradients_none_are_made():
    audio, text = (x.requires_grad_() for x in embeddings(3))
    with torch.no_grad():
        assert not svr(audio, text, 0.3).requires_grad


def test_backward_twice_over_one_graph_gives_the_same():
    audio, text = (x.requires_grad_() for x in embeddings(4))
    loss = svr(audio, text, 0.3)
    first = torch.autograd.grad(loss, text, retain_graph=True)[0].clone()
    assert torch.equal(torch.autograd.grad(loss, text)[0], first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"audio": torch.zeros(3, 4)}, "row i of each is a pair"),
        ({"audio": torch.zeros(0, 4), "text": torch.zeros(0, 4)}, "N ≥ 1"),
        ({"radius": torch.zeros(3)}, "one for each row"),
        ({"radius": torch.zeros(2, 1)}, "one for each row"),
        ({"radius": float("nan")}, "radius must be finite"),
        ({"tau": 0.0}, "tau must be positive"),
        ({"direction": "uni"}, "direction must be one of"),
        ({"similarity": "euclid"}, "similarity must be one of"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        svr(**{"audio": torch.ones(2, 4), "text": torch.ones(2, 4), "radius": 0.1} | change)


def test_integers_are_refused():
    with pytest.raises(TypeError, match="floating-point"):
        support_vector(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3), 0.1)


# --- groups


def groups_of(number, n, d=6, seed=0):
    """Audio and text `(G, N, d)`, leaves that gradients reach."""
    pair = embeddings(number * n, d, seed)
    return [x.view(number, n, d).requires_grad_() for x in pair]


def same_with_gradients(ours, theirs, leaves):
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(loss, leaves, allow_unused=True) for loss in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(1, 5),
    n=st.integers(1, 6),
    block=st.sampled_from([1, 10, 40, 80, MODULE.BLOCK]),
    rows=st.booleans(),
    direction=st.sampled_from(["t2a", "a2t", "both"]),
    similarity=st.sampled_from(["cosine", "dot"]),
    include=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_groups_are_the_mean_of_each_alone(number, n, block, rows, direction, similarity, include, seed):
    audio, text = groups_of(number, n, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    radius = torch.rand((number, n) if rows else (), generator=generator, dtype=DOUBLE).requires_grad_()
    tau = torch.tensor(0.2, dtype=DOUBLE, requires_grad=True)
    options = {"similarity": similarity, "positive_in_denominator": include}
    each = [svr(audio[g], text[g], radius[g] if rows else radius, tau, direction, **options) for g in range(number)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "BLOCK", block)
        together = svr(audio, text, radius, tau, direction, **options)
    same_with_gradients(together, sum(each) / number, (audio, text, radius, tau))


@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(1, 5),
    n=st.integers(1, 5),
    modelling=st.sampled_from(["static", "dynamic"]),
    direction=st.sampled_from(["t2a", "a2t", "both"]),
    beta=st.sampled_from([0.0, 0.4]),
    radius=st.floats(-0.5, 2.0),
    seed=st.integers(0, 1000),
)
def test_module_of_groups_is_the_mean_of_each_alone(number, n, modelling, direction, beta, radius, seed):
    audio, text = groups_of(number, n, seed=seed)
    module = SVR(modelling, direction=direction, alpha=0.7, beta=beta, radius=radius, batch_size=5, hidden=8).double()
    if modelling == "dynamic":
        torch.nn.init.normal_(module.predictor.layers[-1].weight, generator=torch.Generator().manual_seed(seed))
    each, radii = [], []
    for a, t in zip(audio, text, strict=True):
        each.append(module(a, t))
        radii.append(module.mean_radius)
    together = module(audio, text)
    torch.testing.assert_close(module.report()["radius"], sum(radii) / number, rtol=1e-12, atol=1e-12)
    same_with_gradients(together, sum(each) / number, (audio, text, *module.parameters()))


def test_groups_do_not_see_each_other():
    audio, text = groups_of(2, 4)
    (gradient,) = torch.autograd.grad(svr(audio, text, 0.3, 0.1, "both"), text)
    other = text.detach().clone()
    other[1] = -other[1]
    other.requires_grad_()
    (changed,) = torch.autograd.grad(svr(audio, other, 0.3, 0.1, "both"), other)
    assert torch.equal(gradient[0], changed[0])
    assert not torch.allclose(gradient[1], changed[1])


@pytest.mark.parametrize("block", [100, 9, 3])  # all groups, one group, one row
def test_gradcheck_of_groups(block, monkeypatch):
    monkeypatch.setattr(MODULE, "BLOCK", block)
    radius = torch.tensor([[0.3, -0.2, 0.8], [2.5, 0.1, 0.4]], dtype=DOUBLE, requires_grad=True)
    tau = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: svr(*inputs, "both"), (*groups_of(2, 3, d=3), radius, tau))


@given(number=st.integers(1, 6), n=st.integers(1, 12), block=st.integers(1, 200))
def test_blocks_hold_every_similarity_once_and_no_more_than_fit(number, n, block):
    seen = torch.zeros(number, n, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "BLOCK", block)
        for group, row in MODULE._blocks(number, n):
            assert seen[group, row].numel() <= max(block, n)  # one row at least
            seen[group, row] += 1
    assert torch.equal(seen, torch.ones_like(seen))


def test_radii_of_groups_are_those_of_each_alone():
    audio, text = groups_of(3, 4)
    module = SVR("dynamic", batch_size=6, hidden=8).double()
    torch.nn.init.normal_(module.predictor.layers[-1].weight)
    for number, both in enumerate(zip(*module.radii(audio, text), strict=True)):
        alone = module.radii(audio[number], text[number])
        assert all(torch.allclose(x, y) for x, y in zip(both, alone, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_groups_in_half_precision_are_computed_in_single(dtype):
    audio, text = (x.detach().to(dtype) for x in groups_of(3, 5, d=32))
    module = SVR("static", radius=0.3)
    loss = module(audio, text)
    assert loss.dtype == dtype
    assert loss.item() == pytest.approx(module(audio.double(), text.double()).item(), rel=torch.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("audio", "text", "message"),
    [
        (torch.ones(2, 3, 4), torch.ones(3, 3, 4), "must have one shape"),
        (torch.ones(3, 4), torch.ones(2, 3, 4), r"text must have shape \(N, d\)"),
        (torch.ones(0, 3, 4), torch.ones(0, 3, 4), "G ≥ 1"),
        (torch.ones(2, 0, 4), torch.ones(2, 0, 4), "N ≥ 1"),
    ],
)
def test_groups_of_wrong_shape_are_named(audio, text, message):
    with pytest.raises(ValueError, match=message):
        svr(audio, text, 0.1)
    with pytest.raises(ValueError, match=message):
        SVR("static")(audio, text)


def test_radius_of_groups_is_one_for_each_row():
    with pytest.raises(ValueError, match=r"\(2, 3\), one for each row"):
        svr(torch.ones(2, 3, 4), torch.ones(2, 3, 4), torch.ones(3))


# --- constraint and predictor


@pytest.mark.parametrize(("radius", "expected"), [(0.0, 0.0), (0.5, 0.0), (0.8, 0.3 / 2), (2.0, 1.5), (-0.4, 0.4)])
def test_constraint_asks_for_zero_to_distance(radius, expected):
    distance = torch.tensor([0.5, 1.0], dtype=DOUBLE) if radius != 2.0 else torch.tensor([0.5, 0.5], dtype=DOUBLE)
    assert radius_constraint(radius, distance).item() == pytest.approx(expected)
    rows = torch.full((2,), radius, dtype=DOUBLE)
    assert radius_constraint(rows, distance).item() == pytest.approx(expected)


def test_constraint_gradcheck_and_bad_shapes():
    radius = torch.tensor([-0.4, 0.2, 3.0], dtype=DOUBLE, requires_grad=True)
    distance = torch.tensor([0.5, 1.0, 1.5], dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(radius_constraint, (radius, distance))
    with pytest.raises(ValueError, match=r"\(N,\)"):
        radius_constraint(0.1, torch.zeros(2, 2))
    with pytest.raises(ValueError, match="one for each row"):
        radius_constraint(torch.zeros(3), torch.zeros(2))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_positive_first_moves_the_diagonal_and_keeps_the_order_of_negatives(n):
    similarity = torch.arange(n * n).view(n, n)
    rows = [[row[i], *(x for j, x in enumerate(row) if j != i)] for i, row in enumerate(similarity.tolist())]
    assert positive_first(similarity).tolist() == rows
    assert positive_first(similarity.T).tolist() == [
        [column[i], *(x for j, x in enumerate(column) if j != i)] for i, column in enumerate(similarity.T.tolist())
    ]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_positive_first_takes_groups_and_a_place_for_the_result(n):
    similarity = torch.rand(3, n, n)
    expected = torch.stack([positive_first(group) for group in similarity])
    assert torch.equal(positive_first(similarity), expected)
    place = torch.empty(4, n, n)
    positive_first(similarity.mT, out=place[1:])
    assert torch.equal(place[1:], torch.stack([positive_first(group.T) for group in similarity]))


@pytest.mark.parametrize("n", [1, 3, 8])
def test_predictor_takes_groups(n):
    predictor, similarity = trained_predictor(8), torch.rand(4, n, n)
    torch.testing.assert_close(predictor(similarity), torch.stack([predictor(group) for group in similarity]))


def trained_predictor(batch_size, seed=0):
    torch.manual_seed(seed)
    predictor = RadiusPredictor(batch_size, hidden=8)
    torch.nn.init.normal_(predictor.layers[-1].weight)
    return predictor


def test_short_batch_is_filled_with_its_own_negatives():
    predictor = trained_predictor(8)
    short = torch.rand(3, 3)
    p, a, b = short[:, :1], short[:, 1:2], short[:, 2:]
    full = torch.cat([p, a, b, a, b, a, b, a], dim=1)
    assert torch.allclose(predictor(short), predictor.layers(full).squeeze(1))
    assert predictor(torch.rand(8, 8)).shape == (8,)
    assert torch.allclose(predictor(p[:1]), predictor.layers(F.pad(p[:1], (0, 7))).squeeze(1))


def test_long_batch_and_wrong_shapes_are_refused():
    predictor = RadiusPredictor(4)
    with pytest.raises(ValueError, match="a batch of 5 does not fit"):
        predictor(torch.zeros(5, 5))
    with pytest.raises(ValueError, match=r"\(N, N\)"):
        predictor(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="at least 1"):
        RadiusPredictor(0)


def test_predictor_starts_as_the_static_radius_and_is_three_layers():
    predictor = RadiusPredictor(6, initial=0.2)
    assert torch.allclose(predictor(torch.randn(6, 6)), torch.full((6,), 0.2))
    assert sum(isinstance(layer, torch.nn.Linear) for layer in predictor.layers) == 3


# --- modules


@pytest.mark.parametrize("modelling", ["static", "dynamic"])
@pytest.mark.parametrize("direction", ["both", "t2a", "a2t"])
def test_module_starts_as_the_function_with_its_weights(modelling, direction):
    audio, text = embeddings(5)
    loss = SVR(modelling, direction=direction, alpha=0.5, beta=0.2, radius=1.1, batch_size=5)
    radius = float(torch.tensor(1.1))  # the parameters are float32
    distance = (audio - text).norm(dim=1)
    expected = 0.5 * svr(audio, text, radius, 0.07, direction) + 0.2 * radius_constraint(radius, distance)
    assert torch.allclose(loss(audio, text), expected, atol=1e-6)
    assert loss.mean_radius.item() == pytest.approx(1.1)


@pytest.mark.parametrize("direction", ["both", "t2a", "a2t"])
def test_dynamic_module_uses_the_radii_of_each_direction(direction):
    audio, text = embeddings(5)
    loss = SVR("dynamic", direction=direction, beta=0.3, batch_size=7, hidden=8)
    torch.nn.init.normal_(loss.predictor.layers[-1].weight)
    distance = (audio - text).norm(dim=1)
    expected, constraints = 0.0, []
    for one, scores in (("t2a", text @ audio.T / 0.07), ("a2t", audio @ text.T / 0.07)):
        if direction in (one, "both"):
            radius = loss.predictor(positive_first(scores)).double()
            assert radius.std() > 0
            expected += svr(audio, text, radius, 0.07, one)
            constraints.append(radius_constraint(radius, distance))
    expected += 0.3 * sum(constraints) / len(constraints)
    assert torch.allclose(loss(audio, text), expected, atol=1e-5)


def test_constraint_of_the_module_moves_the_radius_and_no_embedding():
    audio, text = (x.requires_grad_() for x in embeddings(5))
    loss = SVR("static", alpha=0.0, beta=1.0, radius=5.0)
    gradients = torch.autograd.grad(loss(audio, text), (audio, text, loss.scalar))
    assert [bool(x.count_nonzero()) for x in gradients] == [False, False, True]
    assert gradients[2] == 1


def test_similarities_reach_the_predictor_without_gradient():
    audio, text = (x.requires_grad_() for x in embeddings(5))
    loss = SVR("dynamic", batch_size=5)
    assert all(radius.grad_fn is not None for radius in loss.radii(audio, text))
    assert torch.autograd.grad(sum(r.sum() for r in loss.radii(audio, text)), (audio,), allow_unused=True) == (None,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("modelling", ["static", "dynamic"])
def test_module_takes_short_batches_and_every_precision(modelling, n, dtype):
    audio, text = (x.to(dtype).requires_grad_() for x in embeddings(n))
    module = SVR(modelling, batch_size=6)
    loss = module(audio, text)
    assert loss.dtype == dtype
    loss.backward()
    assert all(x.grad.isfinite().all() for x in (audio, text, *module.parameters()))


def test_radius_learns_and_can_be_fixed():
    audio, text = embeddings(6)
    for modelling in ("static", "dynamic"):
        module = SVR(modelling, batch_size=6)
        optimiser = torch.optim.Adam(module.parameters(), 0.01)
        before = module(audio, text).item()
        for _ in range(5):
            optimiser.zero_grad()
            module(audio, text).backward()
            optimiser.step()
        assert module(audio, text).item() < before
    assert not any(p.requires_grad for p in SVR("static", learnable=False).parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modelling": "both"}, "modelling must be one of"),
        ({"direction": "bi"}, "direction must be one of"),
        ({"similarity": "l2"}, "similarity must be one of"),
        ({"tau": -1}, "tau must be positive"),
    ],
)
def test_module_names_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        SVR(**options)


# --- the Simple Reweight baseline


@pytest.mark.parametrize("form", ["gradient", "softmax"])
@pytest.mark.parametrize("direction", ["both", "t2a", "a2t"])
def test_weight_one_is_plain_contrastive(form, direction):
    audio, text = embeddings(5)
    expected = info_nce(audio, text, 0.1, direction)
    assert torch.allclose(simple_reweight(audio, text, 1.0, 0.1, direction, form=form), expected)
    module = SimpleReweight(0.1, direction=direction, form=form)
    assert torch.allclose(module(audio, text), expected)
    module(audio, text).backward()
    assert module.raw.grad != 0


@pytest.mark.parametrize("weight", [0.4, 3.0, -1.0])
def test_gradient_form_scales_p_positive_in_eq_4(weight):
    audio, text = embeddings(5)
    leaf = text.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(simple_reweight(audio, leaf, weight, 0.2, "t2a"), leaf)
    forces = decompose(text, audio, 0.2)
    expected = (weight * forces.p_positive - 1)[:, None] * audio / 0.2 + forces.push
    assert torch.allclose(5 * gradient, expected, atol=1e-12)


def test_softmax_form_weights_the_exponential_of_the_positive():
    audio, text = embeddings(5)
    total = 0.0
    for i in range(5):
        terms = [math.exp(float(text[i] @ audio[j]) / 0.2) * (2.5 if i == j else 1) for j in range(5)]
        total -= math.log(terms[i] / sum(terms)) / 5
    assert simple_reweight(audio, text, 2.5, 0.2, "t2a", form="softmax").item() == pytest.approx(total)
    inputs = [x.requires_grad_() for x in embeddings(4, d=3)] + [torch.tensor(2.5, dtype=DOUBLE, requires_grad=True)]
    assert torch.autograd.gradcheck(lambda a, t, w: simple_reweight(a, t, w, 0.3, form="softmax"), inputs)


def test_reweight_names_bad_options():
    with pytest.raises(ValueError, match="form must be one of"):
        SimpleReweight(form="loss")
    with pytest.raises(ValueError, match="weight must be positive"):
        SimpleReweight(form="softmax", weight=0)
    with pytest.raises(ValueError, match="form must be one of"):
        simple_reweight(torch.ones(1, 2), torch.ones(1, 2), 1.0, form="loss")


def test_a_confident_batch_keeps_its_double_digits():
    """Negatives of probability near e⁻²⁸ push by exactly so much, not by nothing and not by e⁻²⁸ ± e⁻²⁰."""
    text = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=DOUBLE, requires_grad=True)
    audio = text.detach().clone()
    (gradient,) = torch.autograd.grad(svr(audio, text, 0.0, 1 / 28, similarity="dot"), text)
    p = 1 / (1 + math.exp(28))
    expected = torch.tensor([[-p, p], [p, -p]], dtype=DOUBLE) * 28 / 2
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=0)

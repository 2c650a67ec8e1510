"""SVR as a module: its weights, radii and precision; languages as groups."""

import pytest
import torch
from embeddings import DIRECTIONS, DOUBLE, each_direction, pairs, same_with_gradients
from hypothesis import given, settings, strategies as st

from pullpush.losses import SVR, _tiles, positive_first, radius_constraint, svr


def groups_of(number, n, d=6, seed=0):
    """Audio and text `(G, N, d)`, leaves that gradients reach."""
    pair = pairs(number * n, d, seed)
    return [x.view(number, n, d).requires_grad_() for x in pair]


@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(1, 5),
    n=st.integers(1, 6),
    block=st.sampled_from([1, 10, 40, 80, _tiles.BLOCK]),
    rows=st.booleans(),
    direction=st.sampled_from(DIRECTIONS),
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
        patch.setattr(_tiles, "BLOCK", block)
        together = svr(audio, text, radius, tau, direction, **options)
    same_with_gradients(together, sum(each) / number, (audio, text, radius, tau))


@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(1, 5),
    n=st.integers(1, 5),
    modelling=st.sampled_from(["static", "dynamic"]),
    direction=st.sampled_from(DIRECTIONS),
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
        value, report = module(a, t)
        each.append(value)
        radii.append(report["radius"])
    together, report = module(audio, text)
    torch.testing.assert_close(report["radius"], sum(radii) / number, rtol=1e-12, atol=1e-12)
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


@pytest.mark.parametrize(
    ("audio", "text", "message"),
    [
        (torch.ones(2, 3, 4), torch.ones(3, 3, 4), "must have one G"),
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


@pytest.mark.parametrize("modelling", ["static", "dynamic"])
@each_direction
def test_module_starts_as_the_function_with_its_weights(modelling, direction):
    audio, text = pairs(5)
    loss = SVR(modelling, direction=direction, alpha=0.5, beta=0.2, radius=1.1, batch_size=5)
    radius = float(torch.tensor(1.1))  # the parameters are float32
    distance = (audio - text).norm(dim=1)
    expected = 0.5 * svr(audio, text, radius, 0.07, direction) + 0.2 * radius_constraint(radius, distance)
    value, report = loss(audio, text)
    assert torch.allclose(value, expected, atol=1e-6)
    assert report["radius"].item() == pytest.approx(1.1)


@each_direction
def test_dynamic_module_uses_the_radii_of_each_direction(direction):
    audio, text = pairs(5)
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
    assert torch.allclose(loss(audio, text).value, expected, atol=1e-5)


def test_constraint_of_the_module_moves_the_radius_and_no_embedding():
    audio, text = (x.requires_grad_() for x in pairs(5))
    loss = SVR("static", alpha=0.0, beta=1.0, radius=5.0)
    gradients = torch.autograd.grad(loss(audio, text).value, (audio, text, loss.scalar))
    assert [bool(x.count_nonzero()) for x in gradients] == [False, False, True]
    assert gradients[2] == 1


def test_similarities_reach_the_predictor_without_gradient():
    audio, text = (x.requires_grad_() for x in pairs(5))
    loss = SVR("dynamic", batch_size=5)
    radius = loss._radius(text[None], audio[None])
    assert radius.grad_fn is not None
    assert torch.autograd.grad(radius.sum(), (audio,), allow_unused=True) == (None,)


def test_radius_learns_and_can_be_fixed():
    audio, text = pairs(6)
    for modelling in ("static", "dynamic"):
        module = SVR(modelling, batch_size=6)
        optimiser = torch.optim.Adam(module.parameters(), 0.01)
        before = module(audio, text).value.item()
        for _ in range(5):
            optimiser.zero_grad()
            module(audio, text).value.backward()
            optimiser.step()
        assert module(audio, text).value.item() < before
    assert not any(p.requires_grad for p in SVR("static", learnable=False).parameters())


def test_a_way_to_model_the_radius_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="modelling must be one of"):
        SVR(modelling="both")

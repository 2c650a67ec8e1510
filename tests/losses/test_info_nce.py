"""InfoNCE against a double loop, autograd and the closed form of its gradient."""

import math
from functools import partial

import pytest
import torch
from embeddings import DOUBLE, each_direction, gradients, pairs
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from pullpush.losses import InfoNCE, additive_margin, focal, info_nce, scaled_push
from pullpush.training import recipe

NEUTRAL = {
    "margin 0": partial(additive_margin, margin=0.0),
    "gamma 0": partial(focal, gamma=0.0),
    "gamma 0, held": partial(focal, gamma=0.0, detach=True),
    "factor 1": partial(scaled_push, perpendicular=1.0),
    "factor 1, sideways": partial(scaled_push, perpendicular=1.0, part="sideways"),
}


def loop_t2a(audio, text, tau):
    """SupCLAP Eq. 1, one term at a time."""
    total = 0.0
    for i in range(len(text)):
        scores = [math.exp(float(text[i] @ audio[j]) / tau) for j in range(len(audio))]
        total -= math.log(scores[i] / sum(scores))
    return total / len(text)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("tau", [0.07, 0.5])
def test_equals_the_double_loop(n, tau):
    audio, text = pairs(n)
    assert info_nce(audio, text, tau, "t2a").item() == pytest.approx(loop_t2a(audio, text, tau), abs=1e-12)
    assert info_nce(audio, text, tau, "a2t").item() == pytest.approx(loop_t2a(text, audio, tau), abs=1e-12)


def test_both_is_the_sum_of_the_directions():
    audio, text = pairs(5)
    both = info_nce(audio, text)
    assert torch.allclose(both, info_nce(audio, text, direction="t2a") + info_nce(audio, text, direction="a2t"))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), seed=st.integers(0, 10_000), tau=st.floats(0.02, 2.0))
def test_permuting_the_batch_and_swapping_modalities_change_nothing(n, seed, tau):
    audio, text = pairs(n, seed=seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    loss = info_nce(audio, text, tau)
    assert torch.allclose(info_nce(audio[order], text[order], tau), loss)
    assert torch.allclose(info_nce(text, audio, tau), loss)
    assert loss >= 0


@each_direction
@pytest.mark.parametrize("loss", NEUTRAL.values(), ids=NEUTRAL)
def test_what_adds_nothing_is_infonce_in_value_and_gradient(loss, direction):
    inputs = (*pairs(6), torch.tensor(0.1, dtype=DOUBLE))
    ours = gradients(lambda a, t, tau: loss(a, t, tau=tau, direction=direction), *inputs)
    theirs = gradients(lambda a, t, tau: info_nce(a, t, tau, direction), *inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("loss", "options"),
    [(additive_margin, {"margin": -0.2}), (focal, {"gamma": 0.5}), (focal, {"gamma": 0.5, "detach": True})],
)
def test_a_recipe_has_it_alone_or_beside_infonce_at_one_temperature(loss, options):
    audio, text = pairs(5)
    name = loss.__name__.replace("_", "-")
    (alone,) = recipe(name, **options, tau=0.2, direction="t2a").terms
    assert alone.create()(audio, text).value == loss(audio, text, **options, tau=0.2, direction="t2a")
    first, second = recipe(f"infonce+{name}", **options, tau=0.2).terms
    assert (dict(first.options), dict(second.options)) == ({"tau": 0.2}, options)


def test_collapsed_embeddings_cost_log_n_in_each_direction():
    same = F.normalize(torch.ones(6, 4, dtype=torch.float64), dim=1)
    assert info_nce(same, same).item() == pytest.approx(2 * math.log(6))


def test_gradcheck_with_learnable_temperature():
    audio, text = pairs(4, d=3)
    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(info_nce, (audio.requires_grad_(), text.requires_grad_(), tau))


def test_module_clamps_its_learnable_temperature():
    loss = InfoNCE(0.07, learnable=True, max_scale=100)
    with torch.no_grad():
        loss.temperature.log_scale.fill_(50.0)
    assert loss.tau.item() == pytest.approx(0.01)
    assert not list(InfoNCE(0.07).parameters())


def test_a_temperature_beyond_its_bound_comes_back_when_it_is_asked_to():
    temperature = InfoNCE(0.011, learnable=True, max_scale=100).temperature
    optimiser = torch.optim.Adam(temperature.parameters(), lr=0.1)

    def steps(count, sign):
        for _ in range(count):
            optimiser.zero_grad()
            (sign * temperature()).backward()
            optimiser.step()

    steps(6, 1)
    assert temperature().item() == pytest.approx(0.01)
    beyond = temperature.log_scale.item()
    assert beyond > math.log(100)
    steps(50, 1)
    assert temperature.log_scale.item() < beyond + 0.5  # momentum runs out, and nothing pushes it further
    steps(200, -1)
    assert temperature().item() > 0.02


@pytest.mark.parametrize("tau", [0.2, 0.01, 0.008])
def test_gradients_of_a_bounded_temperature_pass_within_and_lead_back_beyond(tau):
    temperature = InfoNCE(0.07, learnable=True, max_scale=100).temperature
    with torch.no_grad():
        temperature.log_scale.fill_(math.log(1 / tau) - 1e-6)
    (slope,) = torch.autograd.grad(temperature(), temperature.log_scale)  # a smaller τ is asked for: outwards
    assert slope.item() == pytest.approx(-tau if tau >= 0.01 else 0, rel=1e-5)
    (slope,) = torch.autograd.grad(-temperature(), temperature.log_scale)
    assert slope.item() == pytest.approx(max(tau, 0.01), rel=1e-5)


def test_a_bounded_temperature_in_function_transforms():
    loss = InfoNCE(0.07, learnable=True)
    audio, text = pairs(4, dtype=torch.float32)
    weights = dict(loss.named_parameters())
    found = torch.func.grad(lambda given: torch.func.functional_call(loss, given, (audio, text)).value)(weights)
    loss(audio, text).value.backward()
    torch.testing.assert_close(found["temperature.log_scale"], loss.temperature.log_scale.grad)

"""The parts of a support vector's softmax, each switched by itself, against one anchor at a time."""

from functools import partial
from itertools import product

import pytest
import torch
from embeddings import DOUBLE, each_direction, gradients, pairs
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import entropy

from pullpush.losses import svr_parts, svr_softmax
from pullpush.training import recipe

PARTS = ("certainty", "shares", "vector")
SWITCHES = [dict(zip(PARTS, on, strict=True)) for on in product((True, False), repeat=3)]
named = pytest.mark.parametrize("on", SWITCHES, ids=lambda on: "+".join(e for e in PARTS if on[e]) or "none")


def as_concentrated(shares, others):
    """shares to the power that gives them the entropy of others."""
    power = brentq(lambda power: entropy(softmax(2**power * shares.log())) - entropy(others), -16, 16, xtol=1e-13)
    return torch.from_numpy(softmax(2**power * shares.log().numpy()))


def written_out(audio, text, radius, tau, on):
    """Text-to-audio: value and both gradients, one text at a time."""
    n, d = audio.shape
    value, of_audio, of_text = torch.zeros((), dtype=DOUBLE), torch.zeros_like(audio), torch.zeros_like(text)
    for i in range(n):
        points = {False: text[i], True: text[i] + radius * (audio[i] - text[i]) / (audio[i] - text[i]).norm()}
        p = {moved: (audio @ (x / x.norm()) / tau).softmax(0) for moved, x in points.items()}
        others = [j for j in range(n) if j != i]
        push = 1 - p[on["certainty"]][i]
        shares = p[on["shares"]][others] / p[on["shares"]][others].sum()
        if on.get("concentration") is not None:
            shares = as_concentrated(shares, p[on["concentration"]][others])
        error = torch.zeros(n, dtype=DOUBLE)
        error[others], error[i] = push * shares, -push
        value -= p[on["certainty"]][i].log() / n
        length = points[on["vector"]].norm()
        unit = points[on["vector"]] / length
        across = torch.eye(d, dtype=DOUBLE) - torch.outer(unit, unit)
        of_text[i] += across @ (error @ audio) / length / tau / n
        of_audio += torch.outer(error, unit) / tau / n
    return value, of_audio, of_text


@named
@settings(max_examples=20, deadline=None)
@given(radius=st.floats(-1.5, 2.5), tau=st.floats(0.1, 2), n=st.integers(3, 6), seed=st.integers(0, 99))
def test_shares_are_as_concentrated_as_others(on, radius, tau, n, seed):
    audio, text = pairs(n, d=5, seed=seed)
    on = {**on, "concentration": not on["shares"]}
    found = gradients(lambda a, t: svr_softmax(a, t, radius, tau, direction="t2a", **on), audio, text)
    torch.testing.assert_close(found, written_out(audio, text, radius, tau, on), rtol=0, atol=1e-8)
    same = {**on, "concentration": on["shares"]}
    plain = {**on, "concentration": None}
    two = (gradients(lambda a, t, o=o: svr_softmax(a, t, radius, tau, **o), audio, text) for o in (same, plain))
    torch.testing.assert_close(*two, rtol=0, atol=0)


@named
@settings(max_examples=20, deadline=None)
@given(radius=st.floats(-1.5, 2.5), tau=st.floats(0.1, 2), n=st.integers(2, 6), seed=st.integers(0, 99))
def test_every_combination_is_the_forces_written_out(on, radius, tau, n, seed):
    audio, text = pairs(n, d=5, seed=seed)
    ways = {"t2a": written_out(audio, text, radius, tau, on), "a2t": written_out(text, audio, radius, tau, on)}
    ways["a2t"] = (ways["a2t"][0], ways["a2t"][2], ways["a2t"][1])
    ways["both"] = tuple(one + other for one, other in zip(*ways.values(), strict=True))
    for direction, expected in ways.items():
        found = gradients(lambda a, t, d=direction: svr_softmax(a, t, radius, tau, direction=d, **on), audio, text)
        scale = max(1.0, *(float(x.abs().max()) for x in expected))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10 * scale)


@each_direction
def test_all_on_is_the_probabilities_of_svr_and_all_off_or_no_radius_infonce(direction):
    audio, text = pairs(6)
    tau = torch.tensor(0.1, dtype=DOUBLE)
    probabilities = {"direction": direction, "jacobian": False, "partner": False}
    for radius, on, same in [(0.6, SWITCHES[0], 0.6), (0.6, SWITCHES[-1], 0.0), *((0.0, on, 0.0) for on in SWITCHES)]:
        ours = partial(svr_softmax, radius=radius, direction=direction, **on)
        theirs = partial(svr_parts, radius=same, **probabilities)
        found, expected = (
            gradients(lambda a, t, tau, loss=loss: loss(a, t, tau=tau), audio, text, tau) for loss in (ours, theirs)
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@named
def test_pairs_that_lie_on_each_other_or_opposite_and_one_pair_are_finite(on):
    audio, _ = pairs(4)
    for text, radius in ((audio, 0.6), (-audio, 1.0)):
        found = gradients(lambda a, t, r=radius: svr_softmax(a, t, r, **on), audio, text)
        assert all(x.isfinite().all() for x in found)
    alone = gradients(lambda a, t: svr_softmax(a, t, 0.6, **on), *(x[:1] for x in pairs(4)))
    assert not any(x.any() for x in alone)


@named
def test_a_recipe_switches_the_parts(on):
    audio, text = pairs(5)
    term = recipe("infonce+svr-softmax", radius=0.4, **{"svr-softmax.tau": 0.2}, **on).terms[1].create()
    ours = gradients(lambda a, t: term(a, t).value, audio, text)
    theirs = gradients(lambda a, t: svr_softmax(a, t, 0.4, 0.2, **on), audio, text)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)

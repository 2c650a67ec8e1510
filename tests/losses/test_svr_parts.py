"""The three effects of the radius, each switched by itself, against Eq. 15 written out and against SVR."""

from itertools import product

import pytest
import torch
from embeddings import DOUBLE, each_direction, gradients, pairs, sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import SVR, SVRParts, info_nce, svr, svr_parts
from pullpush.training import recipe

EFFECTS = ("probabilities", "jacobian", "partner")
SWITCHES = [dict(zip(EFFECTS, on, strict=True)) for on in product((True, False), repeat=3)]
NONE = dict.fromkeys(EFFECTS, False)
SIMILARITIES = ("cosine", "dot")
named = pytest.mark.parametrize("on", SWITCHES, ids=lambda on: "+".join(e for e in EFFECTS if on[e]) or "none")


def written_out(audio, text, radius, tau, similarity, on):
    """Text-to-audio: value and both gradients, one text at a time, from Eq. 4 at the point and Eq. 15 as a matrix."""
    n, d = audio.shape
    value, of_audio, of_text = 0.0, torch.zeros_like(audio), torch.zeros_like(text)
    one = torch.eye(d, dtype=DOUBLE)
    for i in range(n):
        difference = audio[i] - text[i]
        unit, c = difference / difference.norm(), radius / difference.norm()
        point = text[i] + radius * unit if on["probabilities"] else text[i]
        length = point.norm() if similarity == "cosine" else torch.tensor(1.0, dtype=DOUBLE)
        query = point / length
        scores = audio @ query / tau
        p = scores.exp() / scores.exp().sum()
        value -= p[i].log() / n
        error = p - torch.eye(n, dtype=DOUBLE)[i]
        force = error @ audio / tau
        if similarity == "cosine":
            force = (one - torch.outer(query, query)) @ force / length
        across = one - torch.outer(unit, unit)
        of_text[i] += ((one - c * across) if on["jacobian"] else one) @ force / n
        of_audio += torch.outer(error, query) / tau / n
        if on["partner"]:
            of_audio[i] += c * across @ force / n
    return value, of_audio, of_text


@named
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("radius", [0.4, -0.7, 2.5])
def test_every_combination_is_the_equations_written_out(radius, similarity, on):
    audio, text = pairs(5)
    turned = lambda a, t: svr_parts(a, t, radius, 0.3, direction="a2t", similarity=similarity, **on)  # noqa: E731
    plain = lambda a, t: svr_parts(a, t, radius, 0.3, direction="t2a", similarity=similarity, **on)  # noqa: E731
    value, of_audio, of_text = written_out(audio, text, radius, 0.3, similarity, on)
    expected = (torch.as_tensor(value), of_audio, of_text)
    torch.testing.assert_close(gradients(plain, audio, text), expected, rtol=0, atol=1e-12)
    value, of_text, of_audio = written_out(text, audio, radius, 0.3, similarity, on)
    torch.testing.assert_close(
        gradients(turned, audio, text), (torch.as_tensor(value), of_audio, of_text), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("similarity", SIMILARITIES)
@each_direction
@pytest.mark.parametrize("shape", [(6, 5), (3, 6, 5)], ids=["batch", "groups"])
def test_all_on_is_svr_in_value_and_gradient(shape, direction, similarity):
    audio, text, tau = sphere(*shape, seed=1), sphere(*shape, seed=2), torch.tensor(0.1, dtype=DOUBLE)
    ours = lambda a, t, tau: svr_parts(a, t, 0.6, tau, direction=direction, similarity=similarity)  # noqa: E731
    theirs = lambda a, t, tau: svr(a, t, 0.6, tau, direction, similarity=similarity)  # noqa: E731
    torch.testing.assert_close(
        gradients(ours, audio, text, tau), gradients(theirs, audio, text, tau), rtol=0, atol=1e-12
    )


@each_direction
@named
def test_radius_zero_or_all_off_is_infonce(on, direction):
    audio, text = pairs(6)
    theirs = gradients(lambda a, t: info_nce(a, t, 0.1, direction), audio, text)
    for radius, switches in ((0.0, on), (0.6, NONE)):
        parts = lambda a, t, r=radius, s=switches: svr_parts(  # noqa: E731
            a, t, r, 0.1, direction=direction, similarity="dot", **s
        )
        torch.testing.assert_close(gradients(parts, audio, text), theirs, rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    radius=st.floats(-1.5, 1.5),
    tau=st.floats(0.05, 2),
    n=st.integers(2, 6),
    seed=st.integers(0, 99),
    similarity=st.sampled_from(SIMILARITIES),
    probabilities=st.booleans(),
)
def test_effects_on_the_gradient_add_up(radius, tau, n, seed, similarity, probabilities):
    """At the same probabilities: both = Jacobian alone + partner alone − neither; values do not know of them."""
    audio, text = pairs(n, d=5, seed=seed)
    found = {
        (jacobian, partner): gradients(
            lambda a, t, j=jacobian, p=partner: svr_parts(
                a, t, radius, tau, similarity=similarity, probabilities=probabilities, jacobian=j, partner=p
            ),
            audio,
            text,
        )
        for jacobian, partner in product((True, False), repeat=2)
    }
    assert len({value.item() for value, *_ in found.values()}) == 1
    terms = (found[key][1:] for key in ((True, True), (True, False), (False, True), (False, False)))
    for both, one, other, neither in zip(*terms, strict=True):
        scale = max(1.0, *(float(x.abs().max()) for x in (both, one, other, neither)))
        torch.testing.assert_close(both, one + other - neither, rtol=0, atol=1e-12 * scale)


@named
def test_groups_are_contrasted_each_among_itself(on):
    audio, text = sphere(3, 4, 5, seed=1), sphere(3, 4, 5, seed=2)
    whole = gradients(lambda a, t: svr_parts(a, t, 0.4, 0.2, **on), audio, text)
    apart = gradients(
        lambda a, t: torch.stack([svr_parts(a[g], t[g], 0.4, 0.2, **on) for g in range(3)]).mean(), audio, text
    )
    torch.testing.assert_close(whole, apart)


@named
def test_an_anchor_on_its_positive_or_moved_to_the_centre_is_finite(on):
    audio, _ = pairs(4)
    for text, radius in ((audio, 0.6), (-audio, 1.0)):
        assert all(x.isfinite().all() for x in gradients(lambda a, t, r=radius: svr_parts(a, t, r, **on), audio, text))


def test_the_term_is_svr_with_a_radius_that_does_not_learn():
    audio, text = pairs(5)
    term = recipe("infonce+svr-parts", radius=0.3, tau=0.2, alpha=2.0).terms[1].create()
    term.temperature = SVRParts(0.2).temperature  # as in an objective: the first term's
    fixed = SVR("static", direction="both", radius=0.3, learnable=False, beta=0.0, tau=0.2, alpha=2.0).double()
    fixed.scalar.data.fill_(0.3)
    ours = gradients(lambda a, t: term(a, t).value, audio, text)
    theirs = gradients(lambda a, t: fixed(a, t).value, audio, text)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert not list(term.parameters())


@named
def test_a_recipe_switches_the_effects(on):
    audio, text = pairs(5)
    term = recipe("infonce+svr-parts", **{"svr-parts.tau": 0.2}, **on).terms[1].create()
    ours = gradients(lambda a, t: term(a, t).value, audio, text)
    theirs = gradients(lambda a, t: svr_parts(a, t, 0.6, 0.2, **on), audio, text)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))

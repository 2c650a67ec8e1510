"""InfoNCE with a part of the push scaled, against the forces of Eq. 4 and against InfoNCE itself."""

import pytest
import torch
from embeddings import DIRECTIONS, DOUBLE, gradients, pairs
from hypothesis import given, settings, strategies as st

from pullpush.forces import decompose, sideways
from pullpush.losses import GradedPush, info_nce, scaled_push
from pullpush.training import recipe

PARTS = ("perpendicular", "sideways")
FITS = torch.tensor([[1.0, 0.2, 0.0, 0.7], [0.0, 1.0, 0.1, 0.0], [0.3, 0.0, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]]).double()


def force(anchor, positive, tau, factors, part):
    """∇ of each anchor's own loss by the force decomposition, negative by negative."""
    forces, probability = decompose(anchor, positive, tau), (anchor @ positive.T / tau).softmax(dim=1)
    found = forces.pull
    for negative in range(len(anchor)):
        weight = probability[:, negative].clone()
        weight[negative] = 0
        push = weight[:, None] * positive[negative] / tau
        across = push - (push * forces.unit).sum(dim=1, keepdim=True) * forces.unit
        scaled = across if part == "perpendicular" else sideways(push, anchor, positive)
        found = found + push + (factors[:, negative, None] - 1) * scaled
    return found


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("related", "unrelated"), [(0.0, 0.0), (1.5, 1.5), (0.25, -2.0)])
def test_anchors_feel_the_forces_with_one_part_scaled_apart_for_negatives_that_fit_in_part(related, unrelated, part):
    audio, text = pairs(4)
    for direction, anchor, positive, fits, place in (("t2a", text, audio, FITS.T, 2), ("a2t", audio, text, FITS, 1)):
        loss = GradedPush(0.2, related=related, unrelated=unrelated, part=part, direction=direction)
        found = gradients(lambda a, t, loss=loss: loss(a, t, FITS).value, audio, text)[place]
        factors = torch.where(fits > 0, related, unrelated).double()
        torch.testing.assert_close(4 * found, force(anchor, positive, 0.2, factors, part), rtol=0, atol=1e-12)


def test_both_directions_are_their_sum_each_with_its_own_anchors():
    audio, text = pairs(6)
    whole = gradients(lambda a, t: scaled_push(a, t, 0.3, 0.2), audio, text)
    parts = [gradients(lambda a, t, d=d: scaled_push(a, t, 0.3, 0.2, direction=d), audio, text) for d in DIRECTIONS[:2]]
    for sum_, one, other in zip(whole, *parts, strict=True):
        torch.testing.assert_close(sum_, one + other)


@settings(max_examples=40, deadline=None)
@given(
    factor=st.floats(-3, 3),
    tau=st.floats(0.02, 2),
    n=st.integers(1, 7),
    seed=st.integers(0, 99),
    part=st.sampled_from(PARTS),
)
def test_gradient_is_linear_in_the_factor_and_the_value_does_not_know_it(factor, tau, n, seed, part):
    audio, text = pairs(n, d=5, seed=seed)
    at = {f: gradients(lambda a, t, f=f: scaled_push(a, t, f, tau, part=part), audio, text) for f in (0.0, 1.0, factor)}
    assert at[factor][0] == at[0.0][0] == at[1.0][0]
    for none, one, some in zip(*(at[f][1:] for f in (0.0, 1.0, factor)), strict=True):
        torch.testing.assert_close(some, none + factor * (one - none), rtol=0, atol=1e-12 / tau)


def test_sideways_is_the_smaller_part():
    audio, text = pairs(5)
    unscaled = gradients(lambda a, t: info_nce(a, t, 0.2, "t2a"), audio, text)[2]
    lost = [
        unscaled - gradients(lambda a, t, p=p: scaled_push(a, t, 0.0, 0.2, direction="t2a", part=p), audio, text)[2]
        for p in PARTS
    ]
    assert (lost[1].norm(dim=1) < lost[0].norm(dim=1)).all()
    for axis in (text, audio):  # outside the plane of anchor and positive
        torch.testing.assert_close((lost[1] * axis).sum(dim=1), torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("part", "left"), [("perpendicular", 0.0), ("sideways", 1.0)])
def test_an_anchor_on_its_positive_has_no_way_to_it(part, left):
    audio, _ = pairs(4)
    found = gradients(lambda a, t: scaled_push(a, t, 0.0, 0.2, direction="t2a", part=part), audio, audio)[2]
    forces = decompose(audio, audio, 0.2)
    along = (forces.push * audio).sum(dim=1, keepdim=True) * audio  # all that a plane of one axis holds
    torch.testing.assert_close(4 * found, forces.pull + left * along, rtol=0, atol=1e-12)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("factor", [1.0, 0.0, 0.5])
def test_one_factor_for_all_negatives_is_the_scaled_push(factor, part):
    loss = GradedPush(0.2, related=factor, unrelated=factor, part=part)
    ours = gradients(lambda a, t: loss(a, t, FITS).value, *pairs(4))
    theirs = gradients(lambda a, t: scaled_push(a, t, factor, 0.2, part=part), *pairs(4))
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_factors_of_negatives_that_are_not_n_by_n_are_refused():
    with pytest.raises(ValueError, match=r"perpendicular must have shape \(N, N\)|perpendicular .* must have one N"):
        scaled_push(*pairs(4), torch.ones(4, 3, dtype=DOUBLE))


def test_a_recipe_says_the_factor_and_the_part():
    audio, text = pairs(5)
    (term,) = recipe("scaled-push", perpendicular=0.5, part="sideways", tau=0.2, direction="t2a").terms
    ours = gradients(lambda a, t: term.create()(a, t).value, audio, text)
    theirs = gradients(lambda a, t: scaled_push(a, t, 0.5, 0.2, direction="t2a", part="sideways"), audio, text)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))

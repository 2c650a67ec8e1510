"""The proof of SVR's push, and what a radius or a weight changes in a step, on embeddings whose answer is known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.losses import info_nce, svr
from pullpush.studies.svr import data, science


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(2, 10),
    d=st.integers(2, 9),
    radius=st.floats(-0.5, 2.0),
    tau=st.sampled_from([0.05, 0.07, 0.5]),
    alpha=st.sampled_from([0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_the_proof_holds_to_the_last_digits(unit, n, d, radius, tau, alpha, seed):
    table = science.proof_errors(unit(n, d, seed), unit(n, d, seed + 1000), radius, tau, alpha)
    assert table["equation"].tolist() == ["Eq. 15", "Eq. 13", "Eq. 16", "Eq. 17", "Eq. 18"]
    assert (table["error"] <= 1e-11 * table["scale"].clip(lower=1)).all()


def test_without_a_radius_the_pushes_sum_to_that_of_infonce(unit):
    text, audio = unit(8, 6), unit(8, 6, 1)
    pushes = science.push_by_negative(text, audio, 0.0, 0.1)
    torch.testing.assert_close(pushes.sum(1), decompose(text, audio, 0.1).push)
    assert torch.equal(pushes.diagonal().T, torch.zeros_like(text)), "the positive does not push"


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_pushes_are_the_gradient_but_for_the_positive(unit, similarity):
    """By finite differences of the loss in the scores of the negatives alone."""
    text, audio, radius, tau = unit(5, 4), unit(5, 4, 1), 0.3, 0.2
    anchor = text.clone().requires_grad_()
    loss = svr(audio, anchor, radius, tau, similarity=similarity, positive_in_denominator=False)
    (gradient,) = torch.autograd.grad(loss * 5, anchor)
    with_positive = science.push_by_negative(text, audio, radius, tau, similarity=similarity).sum(1)
    # Without the positive in the denominator, weights of negatives sum to one; the pull is −∂s⁺/∂t.
    moved = text + radius * F.normalize(audio - text, dim=1)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    p = (moved @ audio.T / tau).softmax(1).diagonal()
    again = text.clone().requires_grad_()
    point = again + radius * F.normalize(audio - again, dim=1)
    point = F.normalize(point, dim=1) if similarity == "cosine" else point
    (pull,) = torch.autograd.grad(-((point * audio).sum(1) / tau).sum(), again)
    torch.testing.assert_close(gradient, pull + with_positive / (1 - p)[:, None])


def test_the_dot_product_follows_the_law_and_the_cosine_departs(unit):
    table = science.departure(unit(8, 6), unit(8, 6, 1), 0.1, radii=[0.0, 0.3, 0.8])
    dot, cosine = (table[table["similarity"] == name].reset_index(drop=True) for name in ("dot", "cosine"))
    assert dot["error"].max() < 1e-12
    np.testing.assert_allclose(dot["parallel"], 1)
    assert dot["perpendicular"].is_monotonic_decreasing
    np.testing.assert_allclose(dot["across"], 1)
    assert cosine["error"][0] < 1e-12, "at R = 0 both are the same on the sphere"
    assert (cosine["error"][1:] > 1e-3).all()
    beyond = science.departure(unit(8, 6), unit(8, 6, 1), 0.1, radii=[2.0])
    np.testing.assert_allclose(beyond["across"][0], -1)


def test_as_the_radius_grows_the_parallel_part_stays_and_the_other_goes(unit):
    fan = science.push_fan(unit(9, 6), unit(9, 6, 1), 0.2, fractions=(0.0, 0.5, 1.0))
    held, followed = (fan[fan["weights"] == name] for name in ("held", "of t_sup"))
    np.testing.assert_allclose(held["parallel"], held["parallel"].iloc[0])
    np.testing.assert_allclose(held["perpendicular"] / held["perpendicular"].iloc[0], [1, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(followed.iloc[0, 2:].astype(float), held.iloc[0, 2:].astype(float))
    assert abs(followed["parallel"].iloc[-1]) < abs(held["parallel"].iloc[-1]), "surer of its sound, it pushes less"


def test_parts_are_those_of_the_gradient_on_the_sphere(unit):
    text, audio = unit(4, 5), unit(4, 5, 1)
    losses = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    row = science.parts_by_loss(text, audio, losses, batch_size=4).iloc[0]
    step = -decompose(text, audio, 0.1).gradient
    step = step - (step * text).sum(1, keepdim=True) * text
    way = audio - (audio * text).sum(1, keepdim=True) * text
    way = way / way.norm(dim=1, keepdim=True)
    along = (step * way).sum(1)
    assert row["parallel"] == pytest.approx(along.abs().mean().item())
    assert row["perpendicular"] == pytest.approx((step - along[:, None] * way).norm(dim=1).mean().item())
    assert row["drift"] == pytest.approx((along / step.norm(dim=1)).mean().item())


def test_a_radius_changes_weights_and_forces_and_reaches_the_sound(unit):
    text, audio = unit(12, 6), unit(12, 6, 1)
    table = science.radius_effects(text, audio, 0.1, (-0.3, 0.0, 0.6), batch_size=6).set_index("radius")
    infonce = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    plain = science.parts_by_loss(text, audio, infonce, batch_size=6)
    for part in ("parallel", "perpendicular"):
        assert table.loc[0.0, part] == pytest.approx(plain.loc[0, part])
    assert table["1 − P_sup"].is_monotonic_decreasing, "nearer to its sound, a support vector is surer of it"
    assert table.loc[0.0, "through t_sup"] == 0
    assert table.loc[0.6, "through t_sup"] > 0
    left = [1 - decompose(text[c], audio[c], 0.1).p_positive.mean().item() for c in (slice(0, 6), slice(6, 12))]
    assert table.loc[0.0, "1 − P_sup"] == pytest.approx(np.mean(left))


def test_a_batch_larger_than_the_set_is_the_set(unit):
    text, audio = unit(5, 6), unit(5, 6, 1)
    large, whole = (science.radius_effects(text, audio, 0.1, [0.0, 0.3], batch_size=size) for size in (16, 5))
    assert large.equals(whole)


def pairs(count: int = 48, size: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    audio = F.normalize(torch.randn(count, size, generator=generator, dtype=torch.float64), dim=1)
    noise = torch.randn(count, size, generator=generator, dtype=torch.float64)
    return F.normalize(audio + 0.4 * noise / size**0.5, dim=1), audio


def test_a_scaled_push_changes_what_is_across_and_a_switch_what_it_is_called_after():
    text, audio = pairs()
    table = science.step_of(data.SYSTEMS, text, audio, 0.2, batch_size=24).set_index("system")
    assert "SVR, learnt R" not in table.index
    across = table["across/along"]
    assert across["across ×0.5"] < across["infonce"] < across["across ×1.5"]
    assert across["SVR:J"] < across["twice"]
    assert table.loc["SVR:P", "parallel"] < table.loc["twice", "parallel"]
    assert (table["audio to audio"] > 0).to_dict() == {
        name: name.startswith("SVR") and "A" in name[4:] for name in table.index
    }

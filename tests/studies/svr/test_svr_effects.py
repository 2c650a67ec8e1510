"""What a radius or a weight changes in a step, on embeddings whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pullpush.forces import decompose
from pullpush.losses import info_nce
from pullpush.studies.svr import effects


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


def test_two_infonce_are_twice_the_parts_of_one_in_one_direction():
    text, audio = unit(12, 6), unit(12, 6, 1)
    losses = effects.text_losses(0.1, 0.2, [("gradient", 1.0), ("softmax", 1.0)])
    table = effects.parts_by_loss(text, audio, losses, batch_size=6).set_index("loss")
    one, two = table.loc["InfoNCE"], table.loc["InfoNCE twice"]
    np.testing.assert_allclose(two[["parallel", "perpendicular"]], 2 * one[["parallel", "perpendicular"]])
    assert two["drift"] == pytest.approx(one["drift"])
    for form in ("gradient", "softmax"):
        np.testing.assert_allclose(table.loc[f"Simple Reweight ({form}), w = 1.00"], one)


def test_parts_are_those_of_the_gradient_on_the_sphere():
    text, audio = unit(4, 5), unit(4, 5, 1)
    losses = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    row = effects.parts_by_loss(text, audio, losses, batch_size=4).iloc[0]
    step = -decompose(text, audio, 0.1).gradient
    step = step - (step * text).sum(1, keepdim=True) * text
    way = audio - (audio * text).sum(1, keepdim=True) * text
    way = way / way.norm(dim=1, keepdim=True)
    along = (step * way).sum(1)
    assert row["parallel"] == pytest.approx(along.abs().mean().item())
    assert row["perpendicular"] == pytest.approx((step - along[:, None] * way).norm(dim=1).mean().item())
    assert row["drift"] == pytest.approx((along / step.norm(dim=1)).mean().item())


def test_a_radius_changes_weights_and_forces_and_reaches_the_sound():
    text, audio = unit(12, 6), unit(12, 6, 1)
    table = effects.radius_effects(text, audio, 0.1, (-0.3, 0.0, 0.6), batch_size=6).set_index("radius")
    infonce = {"one": lambda a, t: info_nce(a, t, 0.1, direction="t2a")}
    plain = effects.parts_by_loss(text, audio, infonce, batch_size=6)
    for part in ("parallel", "perpendicular"):
        assert table.loc[0.0, part] == pytest.approx(plain.loc[0, part])
    assert table["1 − P_sup"].is_monotonic_decreasing, "nearer to its sound, a support vector is surer of it"
    assert table.loc[0.0, "through t_sup"] == 0
    assert table.loc[0.6, "through t_sup"] > 0
    left = [1 - decompose(text[c], audio[c], 0.1).p_positive.mean().item() for c in (slice(0, 6), slice(6, 12))]
    assert table.loc[0.0, "1 − P_sup"] == pytest.approx(np.mean(left))


def test_simple_reweight_below_one_pulls_harder_along_the_way():
    text, audio = unit(12, 6), unit(12, 6, 1)
    assert effects.reweighted_parallel(text, audio, 0.1, 1.0, batch_size=6) == pytest.approx(0)
    assert effects.reweighted_parallel(text, audio, 0.1, 0.2, batch_size=6) > 0


def test_a_batch_larger_than_the_set_is_the_set():
    text, audio = unit(5, 6), unit(5, 6, 1)
    large, whole = (effects.radius_effects(text, audio, 0.1, [0.0, 0.3], batch_size=size) for size in (16, 5))
    assert large.equals(whole)

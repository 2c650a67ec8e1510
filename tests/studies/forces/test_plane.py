"""Tests of the plane that one caption is drawn in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from torch.nn import functional as F

from pullpush.studies.forces import plane


def test_in_the_plane_the_partner_lies_on_the_x_axis_at_its_distance(unit):
    text, audio = unit(20, 8), unit(20, 8, 1)
    groups = [list(range(1, 10)), list(range(10, 20))]
    view = plane.project(text, audio, 0, groups, 0.07)
    assert view.partner[0] == pytest.approx((audio[0] - text[0]).norm().item())
    assert view.partner[1] == pytest.approx(0, abs=1e-9)
    assert [points.shape for points in view.negatives] == [(9, 3), (10, 3)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_the_plane_probabilities_and_pushes_are_those_of_the_loss(unit, count):
    text, audio, tau = unit(20, 8), unit(20, 8, 1), 0.2
    groups = [list(range(1 + 5 * k, 6 + 5 * k)) for k in range(count)]
    view = plane.project(text, audio, 0, groups, tau)
    along = F.normalize(audio[0] - text[0], dim=0)
    for rows, points, push in zip(groups, view.negatives, view.pushes, strict=True):
        scores = [math.exp(text[0] @ audio[j] / tau) for j in [0, *rows]]
        expected = np.array(scores[1:]) / sum(scores)
        np.testing.assert_allclose(points[:, 2], expected, rtol=1e-9)
        np.testing.assert_allclose(points[:, 0], [(audio[j] - text[0]) @ along for j in rows], atol=1e-9)
        force = sum(p * audio[j] for p, j in zip(expected, rows, strict=True)) / tau
        assert push[0] == pytest.approx(-(force @ along).item())
        sideways = (force - (force @ along) * along).norm().item()
        assert abs(push[1]) <= sideways * (1 + 1e-9)
        if count == 1:
            assert abs(push[1]) == pytest.approx(sideways), "the plane of one group holds all of its push"


def test_the_axes_of_the_plane_are_perpendicular(unit):
    # A negative that differs from the anchor only along û must lie on the x-axis.
    text, audio = unit(6, 5), unit(6, 5, 1)
    audio[3] = text[0] + 0.4 * (audio[0] - text[0])
    view = plane.project(text, audio, 0, [[1, 2, 3], [3, 4, 5]], 0.07)
    assert view.negatives[0][2, 1] == pytest.approx(0, abs=1e-9)
    assert view.negatives[1][0, 1] == pytest.approx(0, abs=1e-9)

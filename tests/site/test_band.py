"""A band holds what another seed would end at, knows how little three seeds tell, and does not hold a lost effect."""

import numpy as np
import pytest
from scipy.stats import t as student

from pullpush.site.band import FLOOR, SHARED, Spread, band, moderated, prior


def seeds(sd: float, count: int, systems: int, *, seed: int = 0) -> list[list[float]]:
    """Numbers of systems that differ in their means and share one spread."""
    generator = np.random.default_rng(seed)
    return [(mean + sd * generator.standard_normal(count)).tolist() for mean in np.linspace(0.2, 0.6, systems)]


def test_systems_of_one_spread_are_pooled_and_known_by_all_their_seeds():
    known = [prior(seeds(0.01, 5, 40, seed=seed)) for seed in range(20)]
    assert np.mean([one.sd for one in known]) == pytest.approx(0.01, rel=0.1)
    freedoms = [one.freedom for one in known]
    assert np.median(freedoms) > 40
    assert max(freedoms) == 4 * 40, "never by more than there are"


def test_a_band_is_the_stated_quantile_and_grows_with_the_table():
    spread = Spread(0.02, 20.0)
    expected = student.ppf(1 - 0.01 / 50 / 2, 20) * SHARED * 0.02
    assert band(spread, 0.4, comparisons=50) == pytest.approx(expected)
    assert band(spread, 0.4, comparisons=500) > expected
    assert band(Spread(0.02, 4.0), 0.4, comparisons=50) > 1.5 * expected, "of few seeds"


@pytest.mark.parametrize(
    ("kept", "clips", "floor"),
    [(0.4, 0, FLOOR), (0.4, 1000, FLOOR), (0.4, 20, 0.05), (800.0, 500, 4.0), (-3.0, 0, 0.015)],
)
def test_a_band_is_never_below_half_a_point_or_a_clip(kept, clips, floor):
    assert band(Spread(1e-6, 50.0), kept, comparisons=100, clips=clips) == pytest.approx(floor)
    assert band(None, kept, comparisons=100, clips=clips) == pytest.approx(floor)


def test_right_tables_are_inside_and_a_loss_without_its_second_term_is_not():
    generator = np.random.default_rng(1)
    outside = 0
    for table in range(200):
        groups = seeds(0.08, 3, 8, seed=table)
        known = prior(groups)
        for own in groups:
            width = band(moderated(own, known), own[0], comparisons=8)
            again = np.mean(own) + 0.08 * generator.standard_normal()
            outside += abs(again - own[0]) > width
    assert outside <= 2, "1 % of 200 tables"
    kept = [5.66, 5.70, 5.58, 5.75, 5.63, 5.61, 5.69, 5.72, 5.55, 5.67]  # InfoNCE with SVR, loss of the first epoch
    plain = [4.06, 4.10, 3.98, 4.15, 4.03, 4.01, 4.09, 4.12, 3.95, 4.07]  # without
    known = prior([kept, plain])
    assert abs(plain[0] - kept[0]) > band(moderated(kept, known), kept[0], comparisons=300)

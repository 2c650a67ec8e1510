"""How far a run that is trained again may end from the one that was kept: the band of `pullpush verify`.

Another processor adds in another order, and after some hundred steps the same seed is somewhere else: at worst as far
as another seed. So the band of a number is taken from the spread over seeds,

    band = max(floor, t × 2 × sd)

- sd is the spread over the seeds of the same system at the same point. Three seeds tell little of it, so that it is
  moderated as in Smyth (2004, equations 3 to 8): the systems of the experiment give a prior for the variance, with as
  many degrees of freedom as their variances are alike, and both are pooled. Where no system of the experiment has two
  seeds the prior is that of the chapter, where none of the chapter has, of the whole book.
- t is the two-sided quantile of Student's distribution for these degrees of freedom (at least 3) and an error of
  1 % / m for m numbers in the table (Bonferroni): a right table is inside with 99 % at least.
- 2 and not √2, the spread of a difference of two runs, because seeds share what they stand on, such as a trunk, and
  that may differ as much again.
- floor is half a point: 0.005 of a share, half a per cent of a number above 1, and never less than one clip.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import t as student

ERROR = 0.01  # of a whole table
SHARED = 2.0  # standard deviations of a difference, see above
FLOOR = 0.005
LEAST = 3.0  # degrees of freedom


class Spread(NamedTuple):
    """A standard deviation, and by how many degrees of freedom it is known."""

    sd: float
    freedom: float


def prior(groups: Sequence[Sequence[float]]) -> Spread | None:
    """What the variances of several systems, each over its seeds, say of such variances; None if none has two seeds.

    Log variances have the mean and the spread of a scaled F distribution, whose moments give scale and freedom.

    >>> prior([[1.0, 2.0, 3.0], [5.0]]).sd
    1.0
    >>> prior([[1.0], [2.0]]) is None
    True
    """
    told = [(np.var(group, ddof=1), len(group) - 1) for group in groups if len(group) > 1]
    told = [(variance, freedom) for variance, freedom in told if variance > 0]
    if not told:
        return None
    variances, freedoms = np.array(told).T
    if len(told) == 1:
        return Spread(float(np.sqrt(variances[0])), float(freedoms[0]))
    logs = np.log(variances) - digamma(freedoms / 2) + np.log(freedoms / 2)
    excess = float(np.var(logs, ddof=1) - polygamma(1, freedoms / 2).mean())
    freedom = freedoms.sum()
    if excess > 0:  # the inverse of the trigamma function
        freedom = min(2 * np.exp(brentq(lambda log: float(polygamma(1, np.exp(log))) - excess, -30, 30)), freedom)
    freedom = max(float(freedom), LEAST)
    scale = np.exp(logs.mean() + digamma(freedom / 2) - np.log(freedom / 2))
    return Spread(float(np.sqrt(scale)), freedom)


def moderated(own: Sequence[float], known: Spread | None) -> Spread | None:
    """The spread of one system, by its own seeds and the prior; None where neither tells any.

    >>> moderated([1.0, 2.0, 3.0], Spread(1.0, 8.0))
    Spread(sd=1.0, freedom=10.0)
    """
    freedom = len(own) - 1
    variance = float(np.var(own, ddof=1)) if freedom > 0 else 0.0
    if known is None:
        return Spread(float(np.sqrt(variance)), max(freedom, LEAST)) if variance else None
    whole = known.freedom + freedom
    return Spread(float(np.sqrt((known.freedom * known.sd**2 + freedom * variance) / whole)), whole)


def band(spread: Spread | None, kept: float, *, comparisons: int, clips: int = 0) -> float:
    """How far a number may be from the kept one.

    comparisons: numbers in the table; clips: that the number is a mean of, 0 if it is none.

    >>> round(band(Spread(0.01, 60.0), 0.4, comparisons=200), 3)
    0.087
    >>> band(Spread(0.0001, 60.0), 0.4, comparisons=200, clips=50)
    0.02
    """
    floor = max(FLOOR * max(1.0, abs(kept)), 1 / clips if clips else 0.0)
    if spread is None:
        return floor
    quantile = float(student.ppf(1 - ERROR / comparisons / 2, max(spread.freedom, LEAST)))
    return max(floor, quantile * SHARED * spread.sd)

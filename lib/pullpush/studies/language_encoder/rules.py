"""Two small rules that predict a gain from a few facts, fitted without the conditions that they are tested on.

A rule is a family of linear fits, from which the one with the least error on conditions left out, one after the other,
is taken. Everything is linear in the gains, so that many permutations of them, the columns of `y`, cost little more
than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pullpush.metrics.inference import Array

SHRINKAGE = (0.1, 0.3, 1.0, 3.0)  # of ridge regression: penalty on standardised facts, times the number of rows
SIDE = 2  # conditions that a split leaves on either side at least


class Candidate(NamedTuple):
    """One fit of a family: its design `(n, k)`, the penalty on each column, and where it splits, if it does: (number of
    the fact, threshold).
    """

    design: Array
    penalty: Array
    split: tuple[int, float] | None = None


class Fitted(NamedTuple):
    """What a family predicts of all rows, `(n, B)`, and the candidate that it took for the first column of gains."""

    predicted: Array
    candidate: Candidate


Rows = NDArray[Any]  # `(n,)`: whether each row is meant, or the number of its condition
Family = Callable[[Array, Rows, Rows], Iterator[Candidate]]


def constant(facts: Array, groups: Rows, fit: Rows) -> Iterator[Candidate]:
    """One gain for all."""
    yield Candidate(np.ones((len(facts), 1)), np.zeros(1))


def line(facts: Array, groups: Rows, fit: Rows) -> Iterator[Candidate]:
    """Ridge regression on all facts, or the constant."""
    yield from constant(facts, groups, fit)
    spread = facts[fit].std(axis=0)
    standard = (facts - facts[fit].mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    design = np.column_stack([np.ones(len(facts)), standard])
    for shrinkage in SHRINKAGE:
        yield Candidate(design, np.array([0.0, *[shrinkage * fit.sum()] * facts.shape[1]]))


def split(facts: Array, groups: Rows, fit: Rows) -> Iterator[Candidate]:
    """One threshold of one fact, with a gain on either side, or the constant: what a reader can remember."""
    yield from constant(facts, groups, fit)
    for number, fact in enumerate(facts.T):
        known = np.unique(fact[fit])
        for threshold in (known[1:] + known[:-1]) / 2:
            above = fact >= threshold
            if min(len(np.unique(groups[fit & side])) for side in (above, ~above)) >= SIDE:
                yield Candidate(np.column_stack([~above, above]).astype(float), np.zeros(2), (number, float(threshold)))


FAMILIES: Mapping[str, Family] = {"line": line, "split": split}


def fitted(family: Family, facts: Array, groups: Rows, fit: Rows, y: Array) -> Fitted:
    """The candidate that errs least on conditions left out of `fit`, for each column of gains.

    Args:
        family: one of FAMILIES, or `constant`.
        facts: `(n, k)`.
        groups: `(n,)`, the condition of each row.
        fit: `(n,)` bool, the rows that are known.
        y: gains, `(n, B)`.
    """
    known, candidates = y[fit], list(family(facts, groups, fit))
    smoothers = []
    for candidate in candidates:
        own = candidate.design[fit]
        smoothers.append(candidate.design @ np.linalg.solve(own.T @ own + np.diag(candidate.penalty), own.T))
    errors = np.stack([((left_out(own[fit], groups[fit]) @ known) ** 2).sum(axis=0) for own in smoothers])
    errors[0] *= 1 - 1e-9  # the constant, where another is no better
    best = errors.argmin(axis=0)
    predicted = np.empty_like(y)
    for number in np.unique(best):
        predicted[:, best == number] = smoothers[number] @ known[:, best == number]
    return Fitted(predicted, candidates[best[0]])


def left_out(hat: Array, groups: Rows) -> Array:
    """`(n, n)`: makes of gains the errors of a linear fit, with hat matrix `(n, n)`, on each condition when that is
    left out.

    >>> mean = np.full((3, 3), 1 / 3)  # the mean of the other two
    >>> (left_out(mean, np.arange(3)) @ [1.0, 2.0, 6.0]).round(6).tolist()
    [-3.0, -1.5, 4.5]
    """
    errors = np.eye(len(hat)) - hat
    operator = np.empty_like(errors)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        operator[own] = np.linalg.solve(errors[np.ix_(own, own)], errors[own])
    return operator


def halves(groups: Rows, count: int, rng: np.random.Generator) -> Iterator[Rows]:
    """`(n,)` bool: the rows of a random half of the conditions, and then the other half, `count` times."""
    names = np.unique(groups)
    for _ in range(count):
        chosen = np.isin(groups, rng.permutation(names)[: len(names) // 2])
        yield chosen
        yield ~chosen


def permuted(y: Array, groups: Rows, count: int, rng: np.random.Generator) -> Array:
    """`(n, 1 + count)`: the gains `(n,)`, then `count` times those of whole conditions dealt out among the conditions.

    Raises:
        ValueError: conditions with different numbers of rows, which cannot change places.
    """
    names, sizes = np.unique(groups, return_counts=True)
    if len(set(sizes)) > 1:
        raise ValueError(f"every condition needs as many rows, got {sorted(set(sizes))}: average them first")
    rows = np.stack([np.flatnonzero(groups == name) for name in names])
    columns = [y]
    for _ in range(count):
        dealt = np.empty_like(y)
        dealt[rows] = y[rows[rng.permutation(len(names))]]
        columns.append(dealt)
    return np.column_stack(columns)

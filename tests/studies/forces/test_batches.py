"""Tests of mini-batches against the whole set."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pullpush.errors import PullPushError
from pullpush.studies import means
from pullpush.studies.forces import batches


def test_batches_are_held_against_the_whole_only_where_two_fit(unit):
    found = batches.batches_against_whole(unit(40, 8), unit(40, 8, 1), 0.07, batch_sizes=(4, 20, 21, 40))
    table = batches.local_global_table(found)
    assert table["batch_size"].tolist() == [4, 20]
    assert table["whole"].nunique() == 1
    assert (table["variance"] <= table["batch"] * (1 + 1e-9)).all()
    assert table["cosine"].is_monotonic_increasing, "larger batches come nearer to the whole"
    assert table["variance"].is_monotonic_decreasing


def test_a_set_too_small_for_two_batches_is_refused(unit):
    with pytest.raises(PullPushError, match="6 pairs are too few: batches of 8"):
        batches.batches_against_whole(unit(6, 4), unit(6, 4, 1), 0.07)


def test_the_share_that_fluctuates_is_that_of_the_means(unit):
    found = batches.batches_against_whole(unit(40, 8), unit(40, 8, 1), 0.07, batch_sizes=(4, 20))
    shares = {size: (one.variance.mean() / one.batch.mean()).item() for size, one in found.items()}
    assert batches.local_share(found[4]).value == pytest.approx(shares[4])


def test_larger_batches_come_nearer_to_the_force_of_all(unit):
    found = batches.batches_against_whole(unit(40, 8), unit(40, 8, 1), 0.07, batch_sizes=(4, 20))
    cosines = dict(batches.local_global_table(found)[["batch_size", "cosine"]].to_numpy())
    change = batches.nearer_to_all(found[20], less=found[4])
    assert change.value == pytest.approx(cosines[20] - cosines[4])
    assert change.value > 0
    assert change.clips == 40


def test_the_interval_of_a_share_is_that_of_a_ratio_of_means():
    """The oracle is the spread of the ratio over many samples of clips."""
    generator = np.random.default_rng(0)
    whole = generator.gamma(4, size=(4000, 60))
    part = whole * generator.beta(2, 3, size=whole.shape)
    ratios = part.mean(axis=1) / whole.mean(axis=1)
    halves = [
        means.by_clip(batches._share(torch.tensor(p), torch.tensor(w))).half_width
        for p, w in zip(part[:50], whole[:50], strict=True)
    ]
    assert np.mean(halves) == pytest.approx(2 * ratios.std(), rel=0.1)

"""What each scheme takes of a clip."""

from __future__ import annotations

import torch

from pullpush.encoders import create
from pullpush.studies.consistency.schemes import scheme_batches, take


def test_what_is_taken_is_what_the_scheme_takes():
    generator = torch.Generator().manual_seed(0)
    random = take(50, 4, "random", generator)
    pair = take(50, 4, "pair", generator)
    assert (random.sum(1) == 1).all()
    assert random.any(0).all()
    assert (pair.sum(1) == 2).all()
    assert pair[:, 0].all()


def test_each_scheme_draws_its_own_batch(world):
    batches = dict(scheme_batches(world.train, 4))
    assert {name: len(batch.parallel) for name, batch in batches.items()} == {"ml-clap": 0, "cacl": 1, "kcl": 7}
    assert all(len(batch) == 4 for batch in batches.values())
    assert create("cnn", "hashed", dim=4).encode_text(batches["kcl"].parallel[0]).shape == (4, 4)

"""What each scheme takes of a clip."""

from __future__ import annotations

import torch

from pullpush.studies.consistency.schemes import take


def test_what_is_taken_is_what_the_scheme_takes():
    generator = torch.Generator().manual_seed(0)
    random = take(50, 4, "random", generator)
    pair = take(50, 4, "pair", generator)
    assert (random.sum(1) == 1).all()
    assert random.any(0).all()
    assert (pair.sum(1) == 2).all()
    assert pair[:, 0].all()

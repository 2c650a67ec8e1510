"""Blocks of rows give the contrast of the whole matrix."""

import pytest
import torch
from embeddings import pairs
from hypothesis import given
from hypothesis import strategies as st

from pullpush.losses import (
    _blocked,
    svr,
)

DOUBLE = torch.float64


def test_without_gradients_none_are_made():
    audio, text = (x.requires_grad_() for x in pairs(3))
    with torch.no_grad():
        assert not svr(audio, text, 0.3).requires_grad


def test_backward_twice_over_one_graph_gives_the_same():
    audio, text = (x.requires_grad_() for x in pairs(4))
    loss = svr(audio, text, 0.3)
    first = torch.autograd.grad(loss, text, retain_graph=True)[0].clone()
    assert torch.equal(torch.autograd.grad(loss, text)[0], first)


@given(number=st.integers(1, 6), n=st.integers(1, 12), block=st.integers(1, 200))
def test_blocks_hold_every_similarity_once_and_no_more_than_fit(number, n, block):
    seen = torch.zeros(number, n, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_blocked, "BLOCK", block)
        for group, row in _blocked._blocks(number, n):
            assert seen[group, row].numel() <= max(block, n)  # one row at least
            seen[group, row] += 1
    assert torch.equal(seen, torch.ones_like(seen))

"""Windows of long clips: they cover the clip, are full and of even weight, and leave short clips as they are."""

from __future__ import annotations

import torch
from hypothesis import given, strategies as st

from pullpush.encoders.windows import over_windows, windows

LONGEST = 10


@given(st.lists(st.integers(1, 57), min_size=1, max_size=5))
def test_windows_are_full_cover_every_sample_and_are_as_few_as_can_be(lengths):
    audio = torch.arange(max(lengths)).repeat(len(lengths), 1).float()
    cut = windows(audio, torch.tensor(lengths), LONGEST)
    for clip, length in enumerate(lengths):
        rows = [int(row) for row in torch.nonzero(cut.clip == clip).flatten()]
        heard = [cut.audio[row, : cut.lengths[row]].long().tolist() for row in rows]
        assert len(rows) == max(1, -(-length // LONGEST))
        assert all(len(samples) == min(length, LONGEST) for samples in heard)
        assert all(samples == list(range(samples[0], samples[-1] + 1)) for samples in heard)
        assert set().union(*heard) == set(range(length))


def test_features_are_the_mean_over_windows_and_gradients_flow():
    audio = torch.randn(2, 25, requires_grad=True)
    lengths = torch.tensor([25, 4])
    features = over_windows(lambda cut, sizes: cut.sum(1, keepdim=True), audio, lengths, LONGEST)
    by_hand = [torch.stack([audio[0, start : start + 10].sum() for start in (0, 8, 15)]).mean(), audio[1, :4].sum()]
    torch.testing.assert_close(features[:, 0], torch.stack(by_hand))
    features.sum().backward()
    assert (audio.grad[1, 4:] == 0).all()
    assert (audio.grad[0] != 0).all()

"""Clips that differ in their number of captions, by the same protocol as those that do not."""

from __future__ import annotations

import pytest
import torch

from pullpush.metrics import by_caption, by_clip
from pullpush.metrics._ragged import scores_by_chance


def unit(*shape, seed):
    values = torch.randn(*shape, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(values, dim=-1)


def test_with_equal_numbers_of_captions_it_is_by_clip():
    audio, text = unit(15, seed=0), unit(15, 3, seed=1)
    ragged = by_caption(audio, text.flatten(0, 1), torch.arange(15).repeat_interleave(3))
    for name, values in by_clip(audio, text).items():
        torch.testing.assert_close(ragged[name], values)


def test_each_clip_counts_alike_and_captions_may_come_in_any_order():
    audio = unit(4, seed=0)
    clip = torch.tensor([0, 0, 0, 1, 2, 3, 3])
    text = audio[clip].clone()
    text[1] = audio[3]  # one of three captions of clip 0 asks for clip 3
    values = by_caption(audio, text, clip, ks=(1,), map_at=(10,))
    assert values["T2A R@1"].tolist() == pytest.approx([2 / 3, 1, 1, 1])
    assert values["A2T R@1"].tolist() == [1, 1, 1, 0], "clip 3 finds the stranger first"
    assert values["A2T mAP@10"][3] == pytest.approx((1 / 2 + 2 / 3) / 2)
    order = torch.tensor([4, 6, 1, 0, 5, 2, 3])
    for name, shuffled in by_caption(audio, text[order], clip[order], ks=(1,), map_at=(10,)).items():
        torch.testing.assert_close(shuffled, values[name])


def test_chance_is_what_random_orders_score():
    captions = [1, 2, 5, 4]
    clip = torch.arange(4).repeat_interleave(torch.tensor(captions))
    draws = [by_caption(unit(4, seed=s), unit(12, seed=s + 9000), clip, ks=(1, 5), map_at=(10,)) for s in range(200)]
    for name, expected in scores_by_chance(captions, ks=(1, 5), map_at=(10,)).items():
        assert torch.stack([draw[name] for draw in draws]).mean().item() == pytest.approx(expected, abs=0.06)
    assert scores_by_chance([5, 5, 5])["A2T R@1"] == pytest.approx(5 / 15)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"clip \(M,\)"):
        by_caption(unit(3, seed=0), unit(4, seed=1), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="no relevant item"):
        by_caption(unit(3, seed=0), unit(2, seed=1), torch.tensor([0, 1]))

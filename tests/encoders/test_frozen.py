"""Frozen text encoders: hashed letters by a loop; behind dropout two views in training, one in evaluation."""

import zlib
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pullpush.encoders import TEXT
from pullpush.encoders.frozen import DropoutText, hash_ngrams
from pullpush.errors import UnknownNameError


def test_hashed_counts_ngrams():
    text, orders, size = "Aha", (1, 2), 16
    expected = np.zeros(size)
    padded = " aha "
    for order in orders:
        for gram, count in Counter(padded[i : i + order] for i in range(len(padded) - order + 1)).items():
            code = zlib.crc32(gram.encode())
            expected[code // 2 % size] += count * (1 if code % 2 else -1)
    expected = np.sign(expected) * np.sqrt(abs(expected))
    np.testing.assert_allclose(hash_ngrams([text], size, orders)[0], expected / np.linalg.norm(expected), rtol=1e-6)


@settings(deadline=None)
@given(st.text())
def test_hashed_is_of_unit_length_for_any_text(text):
    norm = np.linalg.norm(hash_ngrams([text], 64, (1, 2, 3)))
    assert norm == pytest.approx(1, abs=1e-5) or norm == 0  # signs may cancel


TEXTS = ["a frog croaks", "a bell rings", "une cloche sonne"]


def test_in_evaluation_it_is_the_encoder_itself():
    assert torch.equal(DropoutText(of="hashed").eval()(TEXTS), TEXT["hashed"].make()(TEXTS))


def test_in_training_a_share_of_the_features_is_left_out_and_the_mean_stays():
    text, wanted = DropoutText(of="hashed", rate=0.25), TEXT["hashed"].make()(TEXTS)
    torch.manual_seed(0)
    views = torch.stack([text(TEXTS) for _ in range(400)])
    left_out = ((views == 0) & (wanted != 0)).float().sum() / (views.shape[0] * (wanted != 0).sum())
    assert left_out == pytest.approx(0.25, abs=0.01)
    assert (views.mean(dim=0) - wanted).abs().max() < 0.05


def test_an_encoder_that_learns_is_refused():
    with pytest.raises(UnknownNameError, match="frozen text encoder 'words'"):
        DropoutText(of="words")

"""The word transformer reads words in their order, whatever stands beside them, and draws dropout while it learns."""

from __future__ import annotations

import pytest
import torch

from pullpush.encoders.word_transformer import WordTransformer

CAPTIONS = ["A frog croaks.", "After a bell rings, a dog barks in the distance.", "", "犬が吠える"]


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    return WordTransformer(width=16, layers=2, heads=2, dropout=0.5).eval()


def test_padding_does_not_change_a_text(encoder):
    together = encoder(CAPTIONS)
    for row, text in enumerate(CAPTIONS):
        torch.testing.assert_close(together[row], encoder([text])[0], atol=1e-5, rtol=1e-4)


def test_words_count_and_not_how_they_are_written(encoder):
    torch.testing.assert_close(*encoder(["A frog croaks.", "a FROG croaks"]))
    one, other = encoder(["a dog bites a man", "a man bites a dog"])
    assert (one - other).norm() > 1e-3


def test_texts_are_cut_to_the_limit():
    short = WordTransformer(width=8, layers=1, heads=2, max_words=2).eval()
    torch.testing.assert_close(*short(["a frog", "a frog croaks"]))


def test_two_passes_differ_while_it_learns_and_not_after(encoder):
    encoder.train()
    assert (encoder(CAPTIONS) - encoder(CAPTIONS)).norm(dim=1).min() > 1e-3, "in every row"
    encoder.eval()
    torch.testing.assert_close(encoder(CAPTIONS), encoder(CAPTIONS))


def test_words_that_share_a_slot_are_one_word():
    single = WordTransformer(width=8, layers=1, heads=2, slots=1).eval()
    torch.testing.assert_close(*single(["a frog", "the bell"]))

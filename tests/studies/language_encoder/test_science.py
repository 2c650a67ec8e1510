"""Words of captions are counted, and published captions read where they are."""

import numpy as np
import pytest

from pullpush.data.recordings import registry
from pullpush.studies.language_encoder.science import published_captions, statistics


def test_words_are_counted():
    row = statistics(["A dog barks.", "A dog barks.", "The cat, a cat!"])
    counts = np.array([3, 2, 2, 2, 1])  # a, dog, barks, cat, the
    assert [row[name] for name in ("captions", "different captions", "words", "different words")] == [3, 2, 10, 5]
    assert row["words a caption"] == pytest.approx(10 / 3)
    assert row["bits a word"] == pytest.approx(-(counts / 10 * np.log2(counts / 10)).sum())
    assert row["share of top 10"] == row["share of top 100"] == pytest.approx(1)
    assert np.isnan(statistics(["dog"])["slope"])


def test_shares_are_of_the_commonest_words_and_the_slope_is_zipf_s_exponent():
    row = statistics([" ".join(f"w{number}" for number in range(1, 201))] + ["w1 w2"] * 50)
    assert row["share of top 10"] == pytest.approx((2 * 51 + 8) / 300)
    assert row["share of top 100"] == pytest.approx((2 * 51 + 98) / 300)
    texts = [f"w{rank}" for rank in range(1, 101) for _ in range(30_000 // rank)] + [f"x{n}" for n in range(500)]
    assert statistics(texts)["slope"] == pytest.approx(-1, abs=0.001)


def test_published_captions_are_read_where_they_are(own_home, tmp_path, monkeypatch):
    monkeypatch.setenv(registry.DATA, str(tmp_path / "data"))
    assert published_captions() == {}
    (tmp_path / "home" / "captions").mkdir(parents=True)
    (tmp_path / "home" / "captions" / "clotho_train.csv").write_text(
        "file_name,caption_1,caption_2\na.wav,A dog barks,A dog is barking\nb.wav,It rains,\n", encoding="utf-8"
    )
    assert published_captions() == {"clotho": ["A dog barks", "A dog is barking", "It rains"]}

"""Statistics of caption sets: counted by hand, and on published captions where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.recordings import registry
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import UnknownNameError
from pullpush.show.curves import word_frequencies as figure_3
from pullpush.studies.language_encoder.words import captions_of, published_captions, statistics, zipf_slope

SMALL = WorldConfig("synthetic", n_train=60, n_valid=4, n_test=6, n_single_per_event=1)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of one's own, and no datasets."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    monkeypatch.setenv(registry.DATA, str(tmp_path / "data"))
    return tmp_path / "home"


def test_words_are_counted():
    row = statistics({"one": ["A dog barks.", "A dog barks.", "The cat, a cat!"]}).iloc[0]
    counts = np.array([3, 2, 2, 2, 1])  # a, dog, barks, cat, the
    assert row["set"] == "one"
    assert row["captions"] == 3
    assert row["different captions"] == 2
    assert row["words"] == 10
    assert row["different words"] == 5
    assert row["words a caption"] == pytest.approx(10 / 3)
    assert row["bits a word"] == pytest.approx(-(counts / 10 * np.log2(counts / 10)).sum())
    assert row["share of top 10"] == row["share of top 100"] == pytest.approx(1)


def test_shares_are_of_the_commonest_words():
    texts = [" ".join(f"w{number}" for number in range(1, 201))] + ["w1 w2"] * 50
    row = statistics({"one": texts}).iloc[0]
    assert row["share of top 10"] == pytest.approx((2 * 51 + 8) / 300)
    assert row["share of top 100"] == pytest.approx((2 * 51 + 98) / 300)


def test_the_slope_is_zipf_s_exponent_over_the_first_ranks():
    ranks = np.arange(1, 501)
    for exponent in (0.5, 1.0, 1.5):
        assert zipf_slope(ranks**-exponent) == pytest.approx(-exponent)
    texts = [f"w{rank}" for rank in range(1, 101) for _ in range(30_000 // rank)] + [f"x{n}" for n in range(500)]
    assert statistics({"one": texts})["slope"].item() == pytest.approx(-1, abs=0.001)
    assert math.isnan(zipf_slope([1.0]))


def test_the_world_s_vocabularies_are_as_they_are_called(home):
    configs = {
        "freesound": LexiconConfig(SMALL),
        "narrow": LexiconConfig(SMALL, "narrow"),
        "skewed": LexiconConfig(SMALL, "rich", 3.0),
    }
    sets = {name: captions_of(config.load()) for name, config in configs.items()}
    assert [len(texts) for texts in sets.values()] == [300, 300, 300]
    table = statistics(sets).set_index("set")
    assert table.loc["narrow", "different words"] < 0.6 * table.loc["freesound", "different words"]
    assert (table["bits a word"].drop("freesound") < table.loc["freesound", "bits a word"]).all()
    assert (table["different captions"].drop("freesound") < table.loc["freesound", "different captions"]).all()
    figure = figure_3({name: word_frequencies(texts) for name, texts in sets.items()})
    assert len(figure.axes[0].lines) == 3


def test_published_captions_are_read_where_they_are(home):
    assert published_captions() == {}
    (home / "captions").mkdir(parents=True)
    (home / "captions" / "clotho_train.csv").write_text(
        "file_name,caption_1,caption_2\na.wav,A dog barks,A dog is barking\nb.wav,It rains,\n", encoding="utf-8"
    )
    (home / "captions" / "clotho_test.csv").write_text("file_name,caption\nc.wav,Wind\n", encoding="utf-8")
    assert published_captions() == {"clotho": ["A dog barks", "A dog is barking", "It rains"]}
    assert published_captions(split="test") == {"clotho": ["Wind"]}


def test_a_split_that_there_is_not_is_refused(home):
    with pytest.raises(UnknownNameError, match="split 'training'"):
        captions_of(SMALL.load(), split="training")

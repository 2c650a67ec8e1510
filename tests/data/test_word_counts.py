"""Words are counted as a reader would."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from pullpush.data.language.vocabulary import word_frequencies, words


def test_words_are_lower_case_without_punctuation_but_within():
    assert words("A dog barks, then (suddenly)") == ["a", "dog", "barks", "then", "suddenly"]
    assert words("") == words(" .,! ") == []
    assert words("कुत्ता भौंकता है, หมา") == ["कुत्ता", "भौंकता", "है", "หมา"]
    assert words("un cafe\u0301") == ["un", "caf\u00e9"]
    assert words("L'horloge fait tic-tac; someone's dog-") == ["l'horloge", "fait", "tic-tac", "someone's", "dog"]


def test_other_scripts():
    assert words("Ein Löwe brüllt") == ["ein", "löwe", "brüllt"]
    assert words("col·legi") == ["col·legi"]
    assert words("青蛙呱呱叫。") == list("青蛙呱呱叫")
    assert words("カエルが3回") == [*"カエルが", "3", "回"]


def test_frequencies_by_hand():
    table = word_frequencies(["a dog", "a cat", "the cat"])
    assert table.to_dict("split")["data"] == [
        [1, "a", 2, 2 / 6],
        [2, "cat", 2, 2 / 6],
        [3, "dog", 1, 1 / 6],
        [4, "the", 1, 1 / 6],
    ]
    assert word_frequencies(["a dog", "a cat"], vocabulary=1).frequency.tolist() == [0.5], "of all words"
    assert len(word_frequencies([])) == 0


@given(st.lists(st.text(alphabet="ab c", max_size=12), max_size=8))
def test_counts_agree_with_splitting_at_spaces(captions):
    table = word_frequencies(captions)
    assert dict(zip(table["word"], table["count"], strict=True)) == Counter(" ".join(captions).split())
    assert table["count"].is_monotonic_decreasing
    if len(table):
        assert table.frequency.sum() == pytest.approx(1)

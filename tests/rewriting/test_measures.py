"""Whether meaning is kept and words are gained, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pullpush.rewriting.measures import meaning, variety

CAPTIONS = [["a bell rings", "bell"], ["a dog barks"], ["rain falls", "it rains", "rain"]]
REWRITTEN = [["the bell rings", "a bell"], ["a hound barks"], ["rain falls", "there is rain", "rain"]]


def encode(texts):
    """A vector a text, drawn by its letters."""
    rows = [np.random.default_rng(list(text.encode())).standard_normal(8) + 1 for text in texts]
    return torch.tensor(np.array(rows), dtype=torch.float32)


def cosine(a, b):
    one, other = encode([a])[0].double(), encode([b])[0].double()
    return float(one @ other / one.norm() / other.norm())


def test_meaning_is_the_mean_over_captions_by_clip():
    found = meaning(CAPTIONS, REWRITTEN, encode)
    for at, texts in enumerate(CAPTIONS):
        kept = [cosine(a, b) for a, b in zip(texts, REWRITTEN[at], strict=True)]
        others = [cosine(a, b) for a in texts for no, several in enumerate(CAPTIONS) if no != at for b in several]
        assert float(found.kept[at]) == pytest.approx(np.mean(kept), abs=1e-6)
        assert float(found.other[at]) == pytest.approx(np.mean(others), abs=1e-6)


def test_captions_that_stay_keep_all_their_meaning():
    torch.testing.assert_close(meaning(CAPTIONS, CAPTIONS, encode).kept, torch.ones(3, dtype=torch.float64))


def test_variety_counts_different_words_and_pairs():
    found = variety(["a dog barks", "A dog, a dog."])
    assert (found.words, found.pairs) == (3, 3)
    assert (found.distinct_1, found.distinct_2) == (3 / 7, 3 / 5)
    assert variety([]) == (0, 0, 0.0, 0.0)


@pytest.mark.parametrize("rewritten", [[["a"], ["b"]], [["a", "b"], ["c"]], [["a", "b"], ["c"], ["d"]]])
def test_captions_that_do_not_match_are_an_error(rewritten):
    with pytest.raises(ValueError, match=r"captions of 3 clips, 6 in all"):
        meaning(CAPTIONS, rewritten, encode)
    with pytest.raises(TypeError, match="got one string"):
        variety("a dog")

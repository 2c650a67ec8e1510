"""Synonyms of WordNet: one word for one word, in the form of the word that was there."""

from __future__ import annotations

from pathlib import Path

import debs
import pytest
from hypothesis import given, strategies as st
from tiny_wordnet import SENSES, write_wordnet

from pullpush.data.language.word_counts import words
from pullpush.data.recordings.debian import SOURCE
from pullpush.errors import DataNotFoundError
from pullpush.rewriting import RewritingError, create
from pullpush.rewriting.synonyms import Synonyms, inflected
from pullpush.rewriting.wordnet import PACKAGE, WordNet, load_wordnet


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_wordnet(tmp_path_factory.mktemp("wordnet")))


def found(folder, caption, **options):
    rewriter = Synonyms(p=1.0, folder=folder, **options)
    return {rewriter.rewrite([caption], number=number)[0] for number in range(60)}


def test_senses_are_read_in_their_order(folder):
    wordnet = WordNet(Path(folder))
    assert wordnet.senses("dog", "noun") == (tuple(SENSES["noun"][0]), ("dog", "cad"))
    assert wordnet.senses("loud", "adj") == (("loud", "noisy"),)
    assert wordnet.senses("whale", "noun") == ()
    assert wordnet.count("dog", "noun") == 11
    assert wordnet.count("low", "adj") == 7


def test_a_word_is_replaced_by_single_words_of_all_its_senses(folder):
    assert found(folder, "The dog.") == {"The hound.", "The cad."}
    assert found(folder, "The dog.", senses=1) == {"The hound."}


def test_forms_articles_and_capitals_follow(folder):
    assert found(folder, "A dog barks.") == {"A hound barks.", "A cad barks.", "A dog yelps."}
    assert found(folder, "A bell is ringing.") == {"An alarm is ringing.", "A bell is sounding.", "A bell is chiming."}
    assert found(folder, "Dogs are humming.") == {"Hounds are humming.", "Cads are humming.", "Dogs are droning."}
    assert found(folder, "An alarm rings, again.") == {
        "A bell rings, again.",
        "An alarm sounds, again.",
        "An alarm chimes, again.",
        "An alarm rings, anew.",
    }
    assert found(folder, "The drone is croaking.") >= {"The drone is dying.", "The drone is cronking."}
    assert found(folder, "The oxes.") == {"The oxes."}  # mice is no regular plural


def test_what_has_no_synonym_stays(folder):
    for caption in ("", "While it is there.", "A whale sings."):
        assert found(folder, caption) == {caption}


TOKENS = ["a", "the", "dog", "bell", "barks", "ringing", "loud", "again", "is", ",", ".", "while", "whale"]


@given(st.lists(st.sampled_from(TOKENS), max_size=9), st.integers(0, 9))
def test_the_number_of_words_stays_and_all_but_one_are_the_same(folder, tokens, number):
    caption = " ".join(tokens)
    (after,) = Synonyms(p=1.0, folder=folder).rewrite([caption], number=number)
    before, now = words(caption), words(after)
    assert len(before) == len(now)
    differ = [place for place, (a, b) in enumerate(zip(before, now, strict=True)) if a != b]
    assert len([place for place in differ if before[place] not in ("a", "an")]) <= 1


def test_captions_become_the_same_in_any_order(folder):
    captions = [f"a dog barks {n}" for n in range(200)]
    rewriter = Synonyms(folder=folder)
    changed = rewriter.rewrite(captions)
    assert rewriter.rewrite(captions[::-1]) == changed[::-1]
    assert rewriter.rewrite(captions, number=1) != changed
    assert sum(a != b for a, b in zip(changed, captions, strict=True)) / 200 == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    ("lemma", "plural", "participle"),
    [
        ("cry", "cries", "crying"),
        ("play", "plays", "playing"),
        ("hiss", "hisses", "hissing"),
        ("hoe", "hoes", "hoeing"),
    ],
)
def test_regular_forms(lemma, plural, participle):
    assert (inflected(lemma, "s"), inflected(lemma, "ing"), inflected(lemma, "")) == (plural, participle, lemma)


def test_wordnet_is_fetched_as_a_package(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    monkeypatch.setenv(SOURCE, str(tmp_path))
    files = {f"usr/share/wordnet/{path.name}": path.read_bytes() for path in Path(folder).iterdir()}
    debs.write_deb(tmp_path, PACKAGE.name, files, version=PACKAGE.version)
    load_wordnet.cache_clear()
    with pytest.warns(UserWarning, match="results may differ"):
        assert load_wordnet().senses("bark", "verb") == (("bark", "yelp"),)
    load_wordnet.cache_clear()


def test_what_is_wrong_is_named(folder, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"no noun\.exc .* to fetch it again"):
        Synonyms(p=1.0, folder=str(tmp_path)).rewrite(["A dog barks."])
    with pytest.raises(RewritingError, match="English alone, got 'fra'"):
        create("synonyms").of(None, "fra")
    with pytest.raises(ValueError, match="senses must be at least 1"):
        create("synonyms", senses=0)
    with pytest.raises(ValueError, match="p is a probability"):
        create("synonyms", p=2)

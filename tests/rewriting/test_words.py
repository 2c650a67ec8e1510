"""Single words: one goes, or a synonym of WordNet takes its place, in its form; and rewriters made of others."""

import re
from pathlib import Path

import debs
import pytest
from hypothesis import given, strategies as st
from tiny_wordnet import SENSES, write_wordnet

from pullpush.data.language.vocabulary import words as words_of
from pullpush.data.recordings.debian import SOURCE
from pullpush.errors import DataNotFoundError
from pullpush.rewriting import RewritingError, create
from pullpush.rewriting.chain import Chain, OneOf
from pullpush.rewriting.words import PACKAGE, Synonyms, WordDeletion, WordNet, inflected, load_wordnet

WORDS = st.lists(st.from_regex(r"[a-z]{1,6}('s|-[a-z]{1,3})?", fullmatch=True), min_size=1, max_size=9)
MARKS = st.lists(st.sampled_from(["", "", ",", ";"]), min_size=9, max_size=9)


def sentence(words, marks):
    text = " ".join(word + mark for word, mark in zip(words, [*marks[: len(words) - 1], ""], strict=True))
    return text[0].upper() + text[1:] + "."


@given(WORDS, MARKS, st.integers(0, 5))
def test_exactly_one_word_goes_and_all_others_keep_their_order(words, marks, seed):
    text = sentence(words, marks)
    (found,) = WordDeletion(p=1.0, seed=seed).rewrite([text])
    shorter = [words[:at] + words[at + 1 :] for at in range(len(words))]
    assert re.findall(r"[\w'-]+", found.lower()) in (shorter if len(words) > 1 else [words])
    assert found.endswith(".")
    assert found[0].isupper()
    assert not re.search(r"  | [,;.]|[,;][,;.]|^[ ,;.]", found)


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(0, 3), st.permutations(range(6)))
def test_a_caption_becomes_the_same_in_any_order_and_company(texts, number, order):
    rewriter = OneOf((WordDeletion(), Chain((WordDeletion(p=0.5), WordDeletion(seed=1)))))
    found = rewriter.rewrite(texts, number=number)
    shuffled = [texts[at] for at in order if at < len(texts)]
    assert rewriter.rewrite(shuffled, number=number) == [found[at] for at in order if at < len(texts)]


def test_words_are_deleted_with_their_probability_and_each_as_often():
    texts = [f"one{n} two three four" for n in range(4000)]
    found = WordDeletion().rewrite(texts)
    changed = [text for text, before in zip(found, texts, strict=True) if text != before]
    assert len(changed) / len(texts) == pytest.approx(0.8, abs=0.03)
    for word in ("two", "three", "four"):
        assert sum(word not in text for text in changed) / len(changed) == pytest.approx(0.25, abs=0.03)
    assert WordDeletion(p=0.0).rewrite(texts) == texts


def test_a_capital_and_commas_are_put_right():
    text = "First, a dog's bark."
    found = {WordDeletion(p=1.0, seed=seed).rewrite([text])[0] for seed in range(30)}
    assert found == {"A dog's bark.", "First, dog's bark.", "First, a bark.", "First, a dog's."}
    assert {WordDeletion(p=1.0, seed=s).rewrite(["雨が降る。"])[0] for s in range(4)} == {"雨が降る。"}


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_probability_is_one(p):
    with pytest.raises(ValueError, match="p must be"):
        WordDeletion(p=p)


@pytest.mark.parametrize("several", [Chain, OneOf])
def test_no_rewriters_are_an_error(several):
    with pytest.raises(ValueError, match="at least one rewriter"):
        several(())


# Synonyms


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


TOKENS = ["a", "the", "dog", "bell", "barks", "ringing", "loud", "again", "is", ",", ".", "while", "whale"]


@given(st.lists(st.sampled_from(TOKENS), max_size=9), st.integers(0, 9))
def test_the_number_of_words_stays_and_all_but_one_are_the_same(folder, tokens, number):
    caption = " ".join(tokens)
    (after,) = Synonyms(p=1.0, folder=folder).rewrite([caption], number=number)
    before, now = words_of(caption), words_of(after)
    assert len(before) == len(now)
    differ = [place for place, (a, b) in enumerate(zip(before, now, strict=True)) if a != b]
    assert len([place for place in differ if before[place] not in ("a", "an")]) <= 1


@pytest.mark.parametrize("forms", ["cry cries crying", "play plays playing", "hiss hisses hissing", "hoe hoes hoeing"])
def test_regular_forms(forms):
    lemma, *others = forms.split()
    assert [inflected(lemma, "s"), inflected(lemma, "ing"), inflected(lemma, "")] == [*others, lemma]


def test_wordnet_is_fetched_as_a_package(folder, own_home, tmp_path, monkeypatch):
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
    with pytest.raises(ValueError, match="p must be"):
        create("synonyms", p=2)

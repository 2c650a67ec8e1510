"""Word deletion, and rewriters made of others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from pullpush.rewriting.chain import Chain, OneOf
from pullpush.rewriting.deletion import WordDeletion

WORDS = st.lists(st.from_regex(r"[a-z]{1,6}('s|-[a-z]{1,3})?", fullmatch=True), min_size=1, max_size=9)
MARKS = st.lists(st.sampled_from(["", "", ",", ";"]), min_size=9, max_size=9)


def sentence(words, marks):
    text = " ".join(word + mark for word, mark in zip(words, [*marks[: len(words) - 1], ""], strict=True))
    return text[0].upper() + text[1:] + "."


def words_of(text):
    return re.findall(r"[\w'-]+", text.lower())


def without_one(words):
    return [words[:at] + words[at + 1 :] for at in range(len(words))]


@given(WORDS, MARKS, st.integers(0, 5))
def test_exactly_one_word_goes_and_all_others_keep_their_order(words, marks, seed):
    text = sentence(words, marks)
    (found,) = WordDeletion(p=1.0, seed=seed).rewrite([text])
    assert words_of(found) in (without_one(words) if len(words) > 1 else [words])
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


def test_numbers_and_seeds_draw_anew():
    texts = [f"one{n} two three four" for n in range(50)]
    found = {tuple(WordDeletion(p=1.0, seed=seed).rewrite(texts, number=n)) for seed in (0, 1) for n in (0, 1)}
    assert len(found) == 4


def test_a_capital_and_commas_are_put_right():
    text = "First, a dog's bark."
    found = {WordDeletion(p=1.0, seed=seed).rewrite([text])[0] for seed in range(30)}
    assert found == {"A dog's bark.", "First, dog's bark.", "First, a bark.", "First, a dog's."}
    assert {WordDeletion(p=1.0, seed=s).rewrite(["雨が降る。"])[0] for s in range(4)} == {"雨が降る。"}


def test_one_of_takes_each_as_often():
    texts = [f"word {n}" for n in range(3000)]
    found = OneOf((WordDeletion(p=1.0), WordDeletion(p=0.0))).rewrite(texts)
    assert sum(a == b for a, b in zip(found, texts, strict=True)) / 3000 == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_probability_is_one(p):
    with pytest.raises(ValueError, match="p is a probability"):
        WordDeletion(p=p)


@pytest.mark.parametrize("several", [Chain, OneOf])
def test_no_rewriters_are_an_error(several):
    with pytest.raises(ValueError, match="at least one rewriter"):
        several(())

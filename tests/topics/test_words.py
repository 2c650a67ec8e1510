"""Words of topics against the formula, loop by loop, and against the package bertopic."""

import math
from collections import Counter

import numpy as np
import pytest
from planted_topics import planted

from pullpush.topics import TopicsError, class_tfidf, topic_words


def naive(texts, labels):
    """Class-based TF-IDF by plain loops: (label, word) → weight."""
    counts = {label: Counter() for label in set(labels)}
    for text, label in zip(texts, labels, strict=True):
        counts[label].update(word for word in text.lower().split() if len(word) > 1)
    average = int(sum(sum(count.values()) for count in counts.values()) / len(counts))
    everywhere = sum(counts.values(), Counter())
    return {
        (label, word): occurs / sum(count.values()) * math.log(1 + average / everywhere[word])
        for label, count in counts.items()
        for word, occurs in count.items()
    }


def test_weights_are_those_of_the_formula_loop_by_loop():
    _, texts, classes = planted()
    labels = np.unique(classes, return_inverse=True)[1] - 1  # outliers among them
    expected = naive(texts, labels.tolist())
    found = topic_words(texts, labels, top=1000)
    flat = {(label, word): weight for label, words in found.items() for word, weight in words}
    assert flat == pytest.approx(expected)


def test_words_and_weights_are_those_of_bertopic():
    bertopic = pytest.importorskip("bertopic")
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    embeddings, texts, classes = planted()
    labels = np.unique(classes, return_inverse=True)[1]
    model = bertopic.BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=BaseCluster())
    theirs, _ = model.fit_transform(texts, embeddings=embeddings, y=labels)
    ours = topic_words(texts, np.array(theirs))
    for topic, words in ours.items():
        expected = [(word, weight) for word, weight in model.get_topic(topic) if word]
        assert dict(words) == pytest.approx(dict(expected), rel=1e-6) or _equal_but_for_ties(words, expected)


def _equal_but_for_ties(words, expected):
    """The last of ten words may be another of the same weight."""
    assert [weight for _, weight in words] == pytest.approx([weight for _, weight in expected], rel=1e-6)
    least = words[-1][1] * (1 + 1e-6)
    return {word for word, weight in words if weight > least} == {word for word, weight in expected if weight > least}


def test_a_word_of_one_topic_goes_before_a_word_of_all():
    words = topic_words(["the dog", "the dog", "the rain", "the rain"], np.array([0, 0, 1, 1]))
    assert words[0][0][0] == "dog"
    assert words[1][0][0] == "rain"
    assert dict(words[0])["the"] == dict(words[1])["the"]


def test_a_class_without_words_weighs_nothing():
    assert class_tfidf(np.array([[2, 1], [0, 0]]))[1].tolist() == [0, 0]


def test_captions_without_words_are_named():
    with pytest.raises(TopicsError, match="no word of two letters"):
        topic_words(["?", "a"], np.array([0, 1]))


def test_letters_of_every_script_are_words():
    words = topic_words(["собака лает", "дождь идёт"], np.array([0, 1]))
    assert {word for word, _ in words[0]} == {"собака", "лает"}
    assert {word for word, _ in topic_words(["कुत्ता भौंकता", "rain"], np.array([0, 1]))[0]} == {"कुत्ता", "भौंकता"}

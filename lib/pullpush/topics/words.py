"""What a topic is about: the words that stand out in its captions, by class-based TF-IDF (Grootendorst 2022, §3.3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from pullpush.errors import PullPushError

Words = tuple[tuple[str, float], ...]  # the words of one topic with their weights, heaviest first
APART = regex.compile(r"[^\w\s\p{M}\p{N}]|_")  # what is neither a letter with its marks nor a digit nor a space
WORD = regex.compile(r"[\w\p{M}\p{N}]{2,}")


class TopicsError(PullPushError, ValueError):
    """Captions in which no topics can be found, or embeddings that cannot be clustered."""


def class_tfidf(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """How much each word stands out in each class,

        W[c, x] = f[c, x] / Σ f[c, ·] · log(1 + A / Σ f[·, x]),    f: how often word x occurs in class c,

    with A the mean number of words of a class, cut to a whole number as BERTopic does.

    Args:
        counts: `(K, V)`, K classes, V words, each of which occurs; a class without words has weights of zero.

    Returns:
        `(K, V)` float64.

    >>> class_tfidf(np.array([[3, 1], [0, 4]])).round(2).tolist()
    [[0.64, 0.15], [0.0, 0.59]]
    """
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) * rarity(counts)


def rarity(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """The second factor of `class_tfidf`, `(V,)`: how rare each word is over all classes."""
    return np.log(1 + int(counts.sum(axis=1).mean()) / counts.sum(axis=0))


def count_words(texts: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """How often each word occurs in each text, a sparse matrix `(N, V)`, and the V words by the alphabet.

    Words are of two letters or digits or more, in lower case. Signs are left out and join what they divide ("dog's" is
    "dogs"), as in BERTopic, which keeps Latin letters alone; for English captions that is the same.
    """
    vectorizer = CountVectorizer(tokenizer=WORD.findall, token_pattern=None)
    try:
        counts = vectorizer.fit_transform([APART.sub("", text) for text in texts])
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise TopicsError("the captions hold no word of two letters or more: topics would have no words") from error
    return counts, tuple(vectorizer.get_feature_names_out())


def by_class(counts: Any, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words of each label's texts together, labels in ascending order: `(K, V)` of `(N, V)`."""
    return np.asarray(np.vstack([counts[labels == label].sum(axis=0) for label in np.unique(labels)]))


def topic_words(texts: Sequence[str], labels: NDArray[np.int64], *, top: int = 10) -> dict[int, Words]:
    """The heaviest words of the texts of each label, those of outliers under -1, as BERTopic weighs them.

    Args:
        texts: N captions.
        labels: `(N,)`.
        top: words a topic at most; words that do not occur in it are left out, and equal weights go by the alphabet.

    Raises:
        TopicsError: no text holds a word.

    >>> told = ["a dog barks", "the dog barks", "rain falls", "rain drips"]
    >>> {topic: words[0][0] for topic, words in topic_words(told, np.array([0, 0, 1, 1])).items()}
    {0: 'barks', 1: 'rain'}
    """
    counts, vocabulary = count_words(texts)
    weights = class_tfidf(by_class(counts, labels))
    order = np.argsort(-weights, axis=1, kind="stable")[:, :top]
    return {
        int(label): tuple((vocabulary[at], float(row[at])) for at in best if row[at] > 0)
        for label, row, best in zip(np.unique(labels), weights, order, strict=True)
    }

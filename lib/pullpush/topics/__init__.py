"""Topics of captions in BERTopic's manner: UMAP, HDBSCAN, class-based TF-IDF, and how far the topics can be trusted.

topics = cluster(embeddings, captions, seed=0)  # (N, d) of any text encoder, N captions
topics.labels                                   # (N,) int64: targets for `losses.ClusterHeads`
stability(embeddings, captions)                 # do other seeds and other orders find the same topics?

The package `bertopic` is the tests' oracle alone: it brings 70 MB and imports for longer than torch and scikit-learn
(16 s to 12 s, on a busy core), and its probabilities of outliers follow another formula: topics would be others.
"""

from pullpush.extras import need

EXTRA = need("book", "pullpush.topics")

from pullpush.topics.agreement import agreement, shuffled, stability
from pullpush.topics.checks import TopicsError
from pullpush.topics.clustering import Topics, cluster
from pullpush.topics.density import Density
from pullpush.topics.outliers import OUTLIER, STRATEGIES
from pullpush.topics.words import class_tfidf, topic_words

__all__ = [
    "OUTLIER",
    "STRATEGIES",
    "Density",
    "Topics",
    "TopicsError",
    "agreement",
    "class_tfidf",
    "cluster",
    "shuffled",
    "stability",
    "topic_words",
]

"""Topics of captions in BERTopic's manner: UMAP, HDBSCAN, class-based TF-IDF, and how far the topics can be trusted.

topics = cluster(embeddings, captions, seed=0)  # (N, d) of any text encoder, N captions
topics.labels                                   # (N,) int64: targets for `losses.ClusterHeads`
agreement(topics.labels, cluster(embeddings, captions, seed=1).labels)["AMI"]  # does another seed find the same?

The package `bertopic` is the tests' oracle alone: it brings 70 MB and imports for longer than torch and scikit-learn
(16 s to 12 s, on a busy core), and its probabilities of outliers follow another formula: topics would be others.
"""

from pullpush.extras import need

EXTRA = need("book", "pullpush.topics")

from pullpush.topics.clustering import STRATEGIES, Topics, agreement, cluster, shuffled
from pullpush.topics.density import OUTLIER, Density
from pullpush.topics.words import TopicsError, class_tfidf, topic_words

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
    "topic_words",
]

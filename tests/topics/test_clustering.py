"""Planted topics are found, the same in any order, and what cannot be clustered is named."""

import numpy as np
import pytest
from planted_topics import EACH, planted

from pullpush.errors import UnknownNameError
from pullpush.topics import OUTLIER, Density, TopicsError, agreement, cluster, density, shuffled
from pullpush.topics.clustering import memberships, merged, reassigned

FLAT = Density(dimensions=0)  # without UMAP: a hundredth of the time


def scattered(rate=0.4):
    """The planted captions, some of them with embeddings between topics, which makes them outliers."""
    embeddings, texts, classes = planted()
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(texts))[: int(rate * len(texts))]
    others = embeddings[rng.permutation(len(texts))[: len(rows)]]
    embeddings[rows] = 0.6 * embeddings[rows] + 0.4 * others + rng.normal(0, 0.05, others.shape)
    return embeddings, texts, classes


@pytest.fixture(scope="module")
def by_umap(module_home):
    """Topics of the planted captions, through UMAP; it compiles itself once."""
    return cluster(*planted()[:2], seed=0)


# What is found


@pytest.mark.deep
def test_planted_topics_are_found(by_umap):
    assert agreement(by_umap.labels, planted()[2])["AMI"] > 0.99
    assert by_umap.sizes.tolist() == [EACH] * 4
    assert by_umap.points.shape == (4 * EACH, 5)
    assert by_umap.probabilities.sum(axis=1) == pytest.approx(1)
    assert {"dog", "rain", "bell", "engine"} <= {word for topic in by_umap.words for word, _ in topic}


@pytest.mark.deep
def test_the_same_seed_finds_the_same_to_the_last_bit(by_umap):
    embeddings, texts, _ = planted()
    again = cluster(embeddings, texts, seed=0)  # in a cache that is empty
    assert (again.labels == by_umap.labels).all()
    assert (again.points == by_umap.points).all()


@pytest.mark.deep
def test_the_order_of_the_captions_cannot_matter(by_umap):
    embeddings, texts, _ = planted()
    rows = np.random.default_rng(5).permutation(len(texts))
    moved = cluster(embeddings[rows], [texts[row] for row in rows], seed=0)
    assert (moved.labels == by_umap.labels[rows]).all()
    assert (moved.points == by_umap.points[rows]).all()
    assert moved.words == by_umap.words


def test_bertopic_s_hdbscan_finds_the_same_regions():
    hdbscan = pytest.importorskip("hdbscan")
    embeddings, texts, _ = scattered()
    found = cluster(embeddings, texts, how=FLAT, outliers="keep", keep_order=True, keep_repeats=True)
    exact = hdbscan.HDBSCAN(min_cluster_size=10, algorithm="generic")  # by default its tree is an approximate one
    theirs = exact.fit(found.points.astype(np.float64))
    assert agreement(found.found + 1, theirs.labels_ + 1)["ARI"] == 1
    assert found.strength == pytest.approx(theirs.probabilities_, abs=1e-6)


def test_what_was_found_is_read_from_the_cache(tmp_path, monkeypatch):
    embeddings, texts, _ = planted()
    first = cluster(embeddings, texts, how=FLAT)
    monkeypatch.setattr("pullpush.topics.density._reduced", None)  # nothing is searched again
    assert (cluster(embeddings, texts, how=FLAT).labels == first.labels).all()
    with pytest.raises(TypeError):
        cluster(embeddings, texts, how=Density(dimensions=0, min_size=9))


def test_topics_are_sorted_by_size():
    embeddings, texts, classes = planted()
    kept = np.flatnonzero((classes != "dog") | (np.arange(len(classes)) % 3 > 0))
    found = cluster(embeddings[kept], [texts[row] for row in kept], how=FLAT)
    assert found.sizes.tolist() == sorted(found.sizes, reverse=True)
    assert (np.bincount(found.labels) == found.sizes).all()
    assert found.table()["captions"].tolist() == found.sizes.tolist()


def test_a_caption_that_occurs_often_is_clustered_once_and_counted_often():
    embeddings, texts, _ = planted()
    often = np.r_[np.arange(len(texts)), np.full(50, 7)]
    args = embeddings[often], [texts[row] for row in often]
    found = cluster(*args, how=FLAT)
    assert len(set(found.labels[len(texts) :])) == 1
    assert found.labels[-1] == found.labels[7] == 0  # its topic is the largest now
    assert (found.points[: len(texts)] == cluster(embeddings, texts, how=FLAT).points).all()
    assert not np.array_equal(cluster(*args, how=FLAT, keep_repeats=True).strength, found.strength), "unless told"


# Fewer topics


@pytest.mark.parametrize("merge", ["c-tf-idf", "embeddings"])
def test_the_most_alike_topics_are_merged(merge):
    embeddings, texts, classes = planted()
    near = classes == "engine"
    embeddings[near] += 2 * embeddings[classes == "dog"].mean(axis=0)  # an engine is like a dog now
    texts = [
        text.replace("engine", "dog").replace("motor", "hound") if near[row] else text for row, text in enumerate(texts)
    ]
    whole = cluster(embeddings, texts, how=FLAT)
    fewer = cluster(embeddings, texts, how=FLAT, count=3, merge=merge)
    assert (whole.count, fewer.count) == (4, 3)
    assert fewer.sizes.tolist() == [2 * EACH, EACH, EACH]
    assert len(set(fewer.labels[np.isin(classes, ["dog", "engine"])])) == 1
    assert fewer.probabilities.sum(axis=1) == pytest.approx(1)


def test_merged_topics_are_those_of_bertopic():
    bertopic = pytest.importorskip("bertopic")
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    embeddings, texts, classes = planted(noise=0.2)
    labels = np.unique(np.char.add(classes, np.char.mod("%d", np.arange(len(classes)) % 2)), return_inverse=True)[1]
    model = bertopic.BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=BaseCluster(), nr_topics=3)
    theirs, _ = model.fit_transform(texts, embeddings=embeddings, y=labels)
    ours = merged(labels, 3, by="embeddings", embeddings=embeddings, texts=texts)
    assert agreement(ours, theirs)["ARI"] == 1


# Outliers


def test_the_probability_of_a_topic_is_the_nearness_of_its_densest_captions():
    points = np.float32([[0, 0], [1, 0], [10, 0], [11, 0], [4, 0]])
    labels, strength = np.array([0, 0, 1, 1, OUTLIER]), np.array([1, 0.5, 0.5, 1, 0])
    likely = memberships(points, labels, strength)
    assert likely[4] == pytest.approx([7 / 11, 4 / 11])  # 4 from the point at 0 and 7 from that at 11
    assert likely[0] == pytest.approx([1, 0], abs=1e-9)


def test_probabilities_follow_those_of_hdbscan():
    hdbscan = pytest.importorskip("hdbscan")
    embeddings, texts, _ = scattered()
    found = cluster(embeddings, texts, how=FLAT, outliers="keep", keep_order=True)
    exact = hdbscan.HDBSCAN(min_cluster_size=10, approx_min_span_tree=False, prediction_data=True)
    theirs = exact.fit(found.points.astype(np.float64))
    soft = hdbscan.all_points_membership_vectors(theirs)
    names = [np.bincount(found.found[theirs.labels_ == topic]).argmax() for topic in range(soft.shape[1])]
    outliers = found.found == OUTLIER
    assert outliers.sum() >= 10
    same = np.array(names)[soft[outliers].argmax(axis=1)] == found.probabilities[outliers].argmax(axis=1)
    assert same.mean() > 0.9


@pytest.mark.parametrize("strategy", ["probabilities", "embeddings", "c-tf-idf"])
def test_outliers_are_given_to_their_topic(strategy):
    embeddings, texts, classes = scattered()
    kept = cluster(embeddings, texts, how=FLAT, outliers="keep")
    given = cluster(embeddings, texts, how=FLAT, outliers=strategy)
    assert kept.outliers > 0.05
    assert (kept.labels == OUTLIER).mean() == kept.outliers == given.outliers
    assert (given.labels != OUTLIER).all()
    assert agreement(given.labels, classes)["AMI"] > agreement(kept.labels, classes)["AMI"] * 0.8
    assert (given.labels[given.found != OUTLIER] == given.found[given.found != OUTLIER]).all()


def test_a_caption_that_shares_no_word_stays_an_outlier_by_words():
    texts = ["dog barks", "dog barks", "rain falls", "rain falls", "zither"]
    labels = np.array([0, 0, 1, 1, OUTLIER])
    told = {"probabilities": np.full((5, 2), 0.5), "embeddings": np.eye(5, 3, dtype=np.float32), "texts": texts}
    assert reassigned(labels, "c-tf-idf", **told)[-1] == OUTLIER
    with pytest.raises(UnknownNameError, match="c-tf-idf"):
        reassigned(labels, "c-tfidf", **told)


# How far they can be trusted


def test_umap_finds_other_topics_with_other_seeds_where_there_are_none():
    noise = np.random.default_rng(0).normal(size=(150, 8))
    texts = [f"word{row} word{row + 1}" for row in range(150)]
    first, second = (cluster(noise, texts, seed=seed, how=Density(min_size=5)).labels for seed in (0, 1))
    assert agreement(first, second)["AMI"] < 0.95


def test_labels_by_chance_agree_with_nothing_and_keep_their_sizes():
    labels = np.arange(400) % 4
    chance = shuffled(labels, seed=1)
    assert np.bincount(chance).tolist() == [100] * 4
    assert abs(agreement(chance, labels)["AMI"]) < 0.02
    assert (shuffled(labels, seed=1) == chance).all()


def test_names_of_labels_do_not_matter_and_outliers_are_left_out():
    found = agreement([2, 2, 0, 0, -1, 1], ["a", "a", "b", "b", "b", ""])
    assert (found["AMI"], found["ARI"], found["labelled"]) == (1, 1, 4 / 6)
    assert agreement([2, 2, 0, 0, -1, 1], ["a", "a", "b", "b", "b", -1]) == found
    with pytest.raises(TopicsError, match="nothing to compare"):
        agreement([-1, -1], ["a", "b"])
    with pytest.raises(TopicsError, match="not None"):
        agreement([0, 1], ["dog", None])
    with pytest.raises(TopicsError, match="a label and a class"):
        agreement([0, 1], ["a"])


# What cannot be clustered


def test_what_cannot_be_clustered_is_named():
    embeddings, texts, _ = planted()
    broken = embeddings.copy()
    broken[[3, 8], 0] = np.nan
    for values, told, options, message in [
        (broken, texts, {}, r"NaN or infinity in the embeddings of captions \[3, 8\] \(2 in all\)"),
        (embeddings[:12], texts[:12], {}, "12 different captions are too few.*give 20 or more"),
        (embeddings[[0] * 99], texts[:1] * 99, {}, "1 different captions are too few"),
        (embeddings, texts, {"how": Density(min_size=1, dimensions=0)}, "one caption is no topic"),
        (embeddings, texts[:-1], {}, "119 texts and 120 embeddings"),
        (embeddings[0], texts, {}, r"\(N, d\)"),
        (embeddings, [[text] for text in texts], {}, "must be texts"),
        (embeddings, texts, {"how": FLAT, "count": 1}, "one topic that holds every caption"),
        (embeddings, texts, {"how": FLAT, "count": 9}, "4 topics were found, and 9 are asked for"),
        (embeddings, texts, {"how": Density(dimensions=-1)}, "or more, got -1"),
    ]:
        with pytest.raises(TopicsError, match=message):
            cluster(values, told, **options)
    with pytest.raises(UnknownNameError, match="c-tf-idf"):
        cluster(embeddings, texts, how=FLAT, count=3, merge="words")


def test_nothing_but_outliers_says_what_to_change():
    noise = np.random.default_rng(0).normal(size=(60, 30))
    with pytest.raises(TopicsError, match="all of 60 captions are outliers at min_size=25; lower min_size"):
        cluster(noise, [f"caption {row}" for row in range(60)], how=Density(dimensions=0, min_size=25))


def test_distances_that_are_given_change_no_bit_of_what_umap_finds():
    from umap import UMAP

    embeddings, _, _ = scattered()
    asked = UMAP(n_components=5, min_dist=0.0, metric="cosine", random_state=4, n_jobs=1).fit_transform(embeddings)
    assert (density._reduced(embeddings.astype(np.float32), Density(), 4) == asked).all()


def test_distances_that_rounding_leaves_below_zero_are_none(monkeypatch):
    from umap import distances

    def rounded(embeddings, metric):
        return pairwise(embeddings, metric=metric) - 1e-7

    pairwise = distances.pairwise_special_metric
    monkeypatch.setattr(distances, "pairwise_special_metric", rounded)
    embeddings = planted()[0].astype(np.float32)
    assert np.isfinite(density._reduced(embeddings, Density(), 0)).all()
